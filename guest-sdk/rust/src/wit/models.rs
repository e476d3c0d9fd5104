// Written by `make bindings` from wit/; do not edit.

//! The models that the host serves, and their tokenizers.

use super::abi::{Abi, Area, Arena, Load, Store};
use super::types::{Error, Token};

/// Facts about a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// The name it is opened by.
    pub name: String,
    /// The architecture, as the model's configuration names it, for example `LlamaForCausalLM`.
    pub architecture: String,
    /// The greatest length of a context, in tokens.
    pub context_length: u32,
    /// How many token ids there are: valid ids are 0 to this, exclusive.
    pub vocabulary_size: u32,
    /// Tokens in one page of the KV cache.
    pub page_size: u32,
    /// The tokens that end a turn or a text; each ends a generation unless told otherwise.
    pub eos_tokens: Vec<Token>,
    /// What the model can do beyond plain text, for example `chat` (it has a chat template), `evict` (tokens can be
    /// evicted from its contexts) or `constraints` (generations can follow them).
    pub features: Vec<String>,
    /// The names of the LoRA adapters that contexts can be made with.
    pub adapters: Vec<String>,
}

impl Abi for ModelInfo {
    const SIZE: usize = 52;
    const ALIGN: usize = 4;
}

impl Load for ModelInfo {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            name: Load::load(at),
            architecture: Load::load(at.add(8)),
            context_length: Load::load(at.add(16)),
            vocabulary_size: Load::load(at.add(20)),
            page_size: Load::load(at.add(24)),
            eos_tokens: Load::load(at.add(28)),
            features: Load::load(at.add(36)),
            adapters: Load::load(at.add(44)),
        }
    }
}

/// A model that contexts can be made of.
#[derive(Debug)]
pub struct Model(u32);

impl Model {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// Opens the model of that name; without a name the host's default.
    pub fn open(name: Option<&str>) -> Result<Model, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/models@0.1.0")]
        extern "C" {
            #[link_name = "[static]model.open"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let (flat1, flat2, flat3) = match &name {
            Some(value) => (1, value.as_ptr() as u32, value.len() as u32),
            None => (0, 0, 0),
        };
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(flat1, flat2, flat3, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The model's facts.
    pub fn info(&self) -> ModelInfo {
        #[link(wasm_import_module = "tartlet:inferlet/models@0.1.0")]
        extern "C" {
            #[link_name = "[method]model.info"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 7]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Token ids of a text. Special tokens that are written out in it (such as `<|im_end|>`) become their ids.
    pub fn tokenize(&self, text: &str) -> Result<Vec<Token>, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/models@0.1.0")]
        extern "C" {
            #[link_name = "[method]model.tokenize"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), text.as_ptr() as u32, text.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The text of token ids, special tokens included. Bytes that are not UTF-8 become U+FFFD.
    pub fn detokenize(&self, tokens: &[Token]) -> Result<String, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/models@0.1.0")]
        extern "C" {
            #[link_name = "[method]model.detokenize"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = Token::list(tokens, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), list1 as u32, tokens.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The bytes of one token, which need not be whole characters.
    pub fn token_bytes(&self, token: Token) -> Result<Vec<u8>, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/models@0.1.0")]
        extern "C" {
            #[link_name = "[method]model.token-bytes"]
            fn call(_: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), token, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The bytes of `count` tokens from `first` on, or of those that there are: each byte as the character of that number
    /// (Latin-1), and U+0100 after each token. For all tokens at once, one call instead of tens of thousands.
    pub fn vocabulary(&self, first: Token, count: u32) -> Result<String, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/models@0.1.0")]
        extern "C" {
            #[link_name = "[method]model.vocabulary"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), first, count, result.at() as u32);
            Load::load(result.at())
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/models@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]model"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Model {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Model {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// The facts of every model that the run may open, the default first.
pub fn list_models() -> Vec<ModelInfo> {
    #[link(wasm_import_module = "tartlet:inferlet/models@0.1.0")]
    extern "C" {
        #[link_name = "list-models"]
        fn call(_: u32);
    }
    let mut result = Area([0; 1]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(result.at() as u32);
        Load::load(result.at())
    }
}
