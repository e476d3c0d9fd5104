//! The models that the host serves, and their tokenizers.

use std::fmt;
use std::rc::Rc;

use crate::context::Context;
use crate::error::{expect, Named, Result};
use crate::wit::{contexts, models};

pub use models::ModelInfo;

/// A model that contexts can be made of. Copies are the same model.
#[derive(Clone)]
pub struct Model {
    handle: Rc<models::Model>,
    info: Rc<ModelInfo>,
}

/// Opens the host's default model. Panics where there is none.
#[track_caller]
pub fn get_auto_model() -> Model {
    expect(Model::open_as(None, "get_auto_model"))
}

/// Opens the model of that name. Error: `NotFound`, which names those that there are.
pub fn get_model(name: &str) -> Result<Model> {
    Model::open_as(Some(name), "get_model")
}

/// The facts of every model that the run may open, the default first.
pub fn available_models() -> Vec<ModelInfo> {
    models::list_models()
}

impl Model {
    fn open_as(name: Option<&str>, call: &'static str) -> Result<Self> {
        let handle = models::Model::open(name).named(call)?;
        let info = handle.info();
        Ok(Self { handle: Rc::new(handle), info: Rc::new(info) })
    }

    /// An empty context. Panics where the run may have no more; `try_create_context` does not.
    #[track_caller]
    pub fn create_context(&self) -> Context {
        expect(self.try_create_context())
    }

    /// An empty context.
    pub fn try_create_context(&self) -> Result<Context> {
        self.context(None, "Model.create_context")
    }

    /// An empty context whose tokens, and those of its forks, are computed with one of the model's LoRA adapters.
    ///
    /// Error: `NotFound`, which names those that there are.
    pub fn create_context_with_adapter(&self, adapter: &str) -> Result<Context> {
        self.context(Some(adapter), "Model.create_context_with_adapter")
    }

    fn context(&self, adapter: Option<&str>, call: &'static str) -> Result<Context> {
        let handle = contexts::Context::create(&self.handle, adapter).named(call)?;
        Ok(Context::new(handle, self.clone()))
    }

    /// The model's facts.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The name it is opened by.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The tokens that end a turn or a text.
    pub fn eos_tokens(&self) -> Vec<u32> {
        self.info.eos_tokens.clone()
    }

    /// Token ids of a text. Special tokens that are written out in it become their ids.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>> {
        self.tokenize_for(text, "Model.tokenize")
    }

    pub(crate) fn tokenize_for(&self, text: &str, call: &'static str) -> Result<Vec<u32>> {
        self.handle.tokenize(text).named(call)
    }

    /// The text of token ids, special tokens included. Bytes that are not UTF-8 become U+FFFD.
    pub fn detokenize(&self, tokens: &[u32]) -> Result<String> {
        self.handle.detokenize(tokens).named("Model.detokenize")
    }

    /// The bytes of one token, which need not be whole characters.
    pub fn token_bytes(&self, token: u32) -> Result<Vec<u8>> {
        self.handle.token_bytes(token).named("Model.token_bytes")
    }

    /// The bytes of every token, by id; special tokens have those of their names. One call of the host.
    pub fn vocabulary(&self) -> Result<Vec<Vec<u8>>> {
        let text = self.handle.vocabulary(0, self.info.vocabulary_size).named("Model.vocabulary")?;
        let mut tokens = Vec::with_capacity(self.info.vocabulary_size as usize);
        let mut token = Vec::new();
        for character in text.chars() {
            match u8::try_from(u32::from(character)) {
                Ok(byte) => token.push(byte),
                Err(_) => tokens.push(std::mem::take(&mut token)), // U+0100 stands after each
            }
        }
        Ok(tokens)
    }

    pub(crate) fn handle(&self) -> &models::Model {
        &self.handle
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Model({:?})", self.info.name)
    }
}
