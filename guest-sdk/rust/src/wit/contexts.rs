// Written by `make bindings` from wit/; do not edit.

//! Contexts: sequences of tokens whose keys and values live in pages of the shared KV cache.

use super::abi::{Abi, Area, Arena, Load, Store};
use super::models::Model;
use super::types::{Error, Event, Token};

/// Whose words a chat message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    System,
    User,
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Abi for Role {
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
}

impl Store for Role {
    unsafe fn store(&self, at: *mut u8, _arena: &mut Arena) {
        at.write(*self as u8);
    }
}

/// How a context is saved.
#[derive(Clone, Debug, PartialEq)]
pub struct SaveOptions {
    /// Nanoseconds for which it is kept; without it, until it is deleted.
    pub ttl_ns: Option<u64>,
    /// Take the place of what is saved under the name; otherwise that is an error, `already-exists`.
    pub overwrite: bool,
}

impl Abi for SaveOptions {
    const SIZE: usize = 24;
    const ALIGN: usize = 8;
}

impl Store for SaveOptions {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.ttl_ns.store(at, arena);
        self.overwrite.store(at.add(16), arena);
    }
}

/// What there is to know of a saved context.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedContext {
    /// The name it is opened by.
    pub name: String,
    /// The model that it was saved with, and can be opened with.
    pub model: String,
    /// The adapter that it was made with, which the model must still have.
    pub adapter: Option<String>,
    /// Number of tokens.
    pub tokens: u32,
    /// What it takes of the tenant's quota.
    pub bytes: u64,
    /// Nanoseconds for which it is still kept; nothing: until it is deleted.
    pub expires_in_ns: Option<u64>,
}

impl Abi for SavedContext {
    const SIZE: usize = 56;
    const ALIGN: usize = 8;
}

impl Load for SavedContext {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            name: Load::load(at),
            model: Load::load(at.add(8)),
            adapter: Load::load(at.add(16)),
            tokens: Load::load(at.add(28)),
            bytes: Load::load(at.add(32)),
            expires_in_ns: Load::load(at.add(40)),
        }
    }
}

/// One sequence of tokens. Operations on a context happen in the order in which they are asked for. Filling only
/// appends tokens: they are computed when a generation, a fork or a flush needs them.
///
/// While a generation runs on it, or a forward pass on it is neither committed nor discarded, a context is busy: it can be
/// read and forked (a fork starts after the last token generated so far, and has none of a pass), everything else is an
/// error, `unavailable`.
#[derive(Debug)]
pub struct Context(u32);

impl Context {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// An empty context. With the name of one of the model's LoRA adapters, its tokens are computed as if the adapter
    /// were merged into the model, and so are those of its forks; an unknown name is an error, `not-found`. Contexts
    /// with different adapters share no pages.
    pub fn create(model: &Model, adapter: Option<&str>) -> Result<Context, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[static]context.create"]
            fn call(_: u32, _: u32, _: u32, _: u32, _: u32);
        }
        let (flat1, flat2, flat3) = match &adapter {
            Some(value) => (1, value.as_ptr() as u32, value.len() as u32),
            None => (0, 0, 0),
        };
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), flat1, flat2, flat3, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Appends a text as it is. Special tokens written out in it become their ids.
    pub fn fill(&self, text: &str) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.fill"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), text.as_ptr() as u32, text.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Appends token ids.
    pub fn fill_tokens(&self, tokens: &[Token]) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.fill-tokens"]
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

    /// Appends a chat message in the form that the model's chat template gives it, after closing an assistant's turn
    /// that a generation left open. Special tokens in the text stay text.
    pub fn fill_message(&self, role: Role, text: &str) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.fill-message"]
            fn call(_: u32, _: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), role as u32, text.as_ptr() as u32, text.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Begins the assistant's turn, as the chat template writes it. A generation does so by itself if the last thing
    /// filled was a chat message of another role.
    pub fn cue(&self) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.cue"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Computes what has been filled. The event becomes ready when it is done; its outcome says whether it could be.
    pub fn flush(&self) -> Result<Event, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.flush"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// A context with the same tokens, which shares the pages: no page is copied and nothing is computed twice. What the
    /// two append afterwards does not concern the other.
    pub fn fork(&self) -> Result<Context, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.fork"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Number of tokens.
    pub fn length(&self) -> u32 {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.length"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// Number of positions that are taken: those of its tokens, and those of tokens that were evicted before them. The
    /// model's context length less this is how many tokens can be added.
    pub fn positions(&self) -> u32 {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.positions"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// All tokens, in order.
    pub fn tokens(&self) -> Vec<Token> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.tokens"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 1]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Drops the tokens after the first `length`.
    pub fn truncate(&self, length: u32) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.truncate"]
            fn call(_: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), length, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Drops the tokens from `start` to before `end` out of the middle, once what has been filled is computed; the last
    /// token must stay. Tokens that come later do not see them: it is as if they were masked. What is kept stays as it was
    /// computed, at its positions, and positions go on after the last token: what was evicted still counts for the context
    /// length. Truncating to before the gap takes it back.
    ///
    /// The event becomes ready when that is done; its outcome says whether it could be. `length` and `tokens` change then,
    /// and other calls on the context wait for it. `unsupported` if the model's features do not have `evict`.
    pub fn evict(&self, start: u32, end: u32) -> Result<Event, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.evict"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), start, end, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Saves the context under a name that belongs to the tenant, with its keys and values, after computing what has been
    /// filled. The event becomes ready when that is done; its outcome says whether it could be: `already-exists`,
    /// `quota-exceeded`. What is done to the context meanwhile does not concern what is saved. A save outlives its run
    /// once the event is ready; a run that ends before may have saved it whole or not at all.
    ///
    /// A name has 1 to 128 letters (a-z, A-Z), digits and the characters `. _ : / -`, and begins with a letter or a digit.
    pub fn save(&self, name: &str, options: &SaveOptions) -> Result<Event, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]context.save"]
            fn call(_: u32, _: u32, _: u32, _: u32, _: u64, _: u32, _: u32);
        }
        let (flat1, flat2) = match &options.ttl_ns {
            Some(value) => (1, *value),
            None => (0, 0),
        };
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(
                self.handle(), name.as_ptr() as u32, name.len() as u32, flat1, flat2, options.overwrite as u32, result.at() as u32,
            );
            Load::load(result.at())
        }
    }

    /// Opens a saved context: the same tokens, keys, values and state of the chat, read and not computed. Each opening
    /// gives a context of its own. Errors come when it is taken: `not-found`, also for a file that is damaged, and
    /// `unsupported` if it was saved with another model, or with an adapter that is not there or is another one now.
    pub fn open(model: &Model, name: &str) -> Result<Opening, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[static]context.open"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), name.as_ptr() as u32, name.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]context"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Context {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Context {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// A saved context on its way. Dropping it before the context is taken gives it up.
#[derive(Debug)]
pub struct Opening(u32);

impl Opening {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// The event that becomes ready when the context can be taken. The same at every call; it goes away with the opening.
    pub fn ready(&self) -> Event {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]opening.ready"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// The context, once; or why it cannot be opened. `unavailable` before the event is ready.
    pub fn take(&self) -> Result<Context, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[method]opening.take"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]opening"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Opening {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Opening {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// The saved contexts of the tenant, by name, those of other models too.
pub fn list_saved() -> Result<Vec<SavedContext>, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
    extern "C" {
        #[link_name = "list-saved"]
        fn call(_: u32);
    }
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(result.at() as u32);
        Load::load(result.at())
    }
}

/// Deletes a saved context of the tenant. Contexts that were opened from it are not concerned.
pub fn delete_saved(name: &str) -> Result<(), Error> {
    #[link(wasm_import_module = "tartlet:inferlet/contexts@0.1.0")]
    extern "C" {
        #[link_name = "delete-saved"]
        fn call(_: u32, _: u32, _: u32);
    }
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(name.as_ptr() as u32, name.len() as u32, result.at() as u32);
        Load::load(result.at())
    }
}
