//! Contexts: sequences of tokens whose keys and values live in pages of the shared KV cache.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::error::{expect, Named, Result};
use crate::event::OwnedEvent;
use crate::executor::{forget, ready};
use crate::forward::{Pass, PassRequest};
use crate::generation::Generate;
use crate::model::Model;
use crate::sampler::Sampler;
use crate::steps::StepsRequest;
use crate::stop_condition::StopCondition;
use crate::time::nanoseconds;
use crate::wit::contexts;

pub use contexts::{Role, SavedContext};

/// One sequence of tokens. Make one with `model.create_context()`, or `fork` another.
///
/// Filling only appends tokens: they are computed when a generation, a fork or a flush needs them. The methods that return
/// no `Result` panic where the host refuses, which ends the run with the reason and the place; each has a `try_` twin.
pub struct Context {
    handle: Rc<contexts::Context>,
    model: Model,
}

impl Context {
    pub(crate) fn new(handle: contexts::Context, model: Model) -> Self {
        Self { handle: Rc::new(handle), model }
    }

    /// The same context for a generation, which keeps it as long as it lasts.
    pub(crate) fn share(&self) -> Self {
        Self { handle: Rc::clone(&self.handle), model: self.model.clone() }
    }

    /// Appends a system message, in the form that the model's chat template gives it.
    #[track_caller]
    pub fn fill_system(&mut self, text: &str) {
        expect(self.fill_message(Role::System, text, "Context.fill_system"));
    }

    /// Appends a message of the user.
    #[track_caller]
    pub fn fill_user(&mut self, text: &str) {
        expect(self.fill_message(Role::User, text, "Context.fill_user"));
    }

    /// Appends a message of the assistant, as if the model had said it.
    #[track_caller]
    pub fn fill_assistant(&mut self, text: &str) {
        expect(self.fill_message(Role::Assistant, text, "Context.fill_assistant"));
    }

    /// Appends the result of a tool call.
    #[track_caller]
    pub fn fill_tool(&mut self, text: &str) {
        expect(self.fill_message(Role::Tool, text, "Context.fill_tool"));
    }

    /// Appends a message of whoever it is.
    pub fn try_fill_message(&mut self, role: Role, text: &str) -> Result<()> {
        self.fill_message(role, text, "Context.try_fill_message")
    }

    fn fill_message(&mut self, role: Role, text: &str, call: &'static str) -> Result<()> {
        self.handle.fill_message(role, text).named(call)
    }

    /// Appends a text as it is. Special tokens written out in it become their ids.
    #[track_caller]
    pub fn fill(&mut self, text: &str) {
        expect(self.handle.fill(text).named("Context.fill"));
    }

    /// Appends a text as it is.
    pub fn try_fill(&mut self, text: &str) -> Result<()> {
        self.handle.fill(text).named("Context.try_fill")
    }

    /// Appends token ids.
    #[track_caller]
    pub fn fill_tokens(&mut self, tokens: &[u32]) {
        expect(self.handle.fill_tokens(tokens).named("Context.fill_tokens"));
    }

    /// Appends token ids.
    pub fn try_fill_tokens(&mut self, tokens: &[u32]) -> Result<()> {
        self.handle.fill_tokens(tokens).named("Context.try_fill_tokens")
    }

    /// Begins the assistant's turn. A generation does so by itself after a chat message of another role.
    pub fn cue(&mut self) -> Result<()> {
        self.handle.cue().named("Context.cue")
    }

    /// Computes what has been filled, and waits until that is done.
    pub async fn flush(&mut self) -> Result<()> {
        OwnedEvent::new(self.handle.flush().named("Context.flush")?).finish("Context.flush").await
    }

    /// A context with the same tokens, which shares the pages: nothing is copied or computed twice.
    #[track_caller]
    pub fn fork(&self) -> Context {
        expect(self.fork_as("Context.fork"))
    }

    /// A context with the same tokens.
    pub fn try_fork(&self) -> Result<Context> {
        self.fork_as("Context.try_fork")
    }

    fn fork_as(&self, call: &'static str) -> Result<Context> {
        Ok(Context::new(self.handle.fork().named(call)?, self.model.clone()))
    }

    /// Generates text at the end of the context. It starts when it is awaited; see `Generate` for all it can do.
    #[track_caller]
    pub fn generate(&mut self, sampler: Sampler, stop: StopCondition) -> Generate<'_> {
        Generate::new(self.share(), sampler, stop)
    }

    /// Generates token by token, with the program in control between them.
    pub fn steps(&mut self, sampler: Sampler, stop: StopCondition) -> StepsRequest<'_> {
        StepsRequest::new(self.share(), sampler, stop)
    }

    /// Computes tokens after the last one without keeping them, and tells what the model says of them.
    pub async fn forward(&mut self, tokens: &[u32], request: PassRequest) -> Result<Pass<'_>> {
        Pass::compute(self, tokens, request, "Context.forward").await
    }

    /// Drops the tokens after the first `length`.
    pub fn truncate(&mut self, length: usize) -> Result<()> {
        self.handle.truncate(to_u32(length)).named("Context.truncate")
    }

    /// Drops the tokens from `start` to before `end` out of the middle, and waits until that is done.
    ///
    /// Tokens that come later do not see them; they still count for the context length. The last token must stay.
    pub async fn evict(&mut self, start: usize, end: usize) -> Result<()> {
        let event = self.handle.evict(to_u32(start), to_u32(end)).named("Context.evict")?;
        OwnedEvent::new(event).finish("Context.evict").await
    }

    /// Evicts all but the first and the last tokens, if there are more.
    pub async fn keep(&mut self, first: usize, last: usize) -> Result<()> {
        let length = self.len();
        if length > first.saturating_add(last) {
            self.evict(first, length - last).await?;
        }
        Ok(())
    }

    /// Saves the context under a name, for this tenant's later runs, and waits until that is done.
    ///
    /// A name has 1 to 128 letters, digits and `. _ : / -`. Without a `ttl` it is kept until it is deleted. Error:
    /// `AlreadyExists`, if the name is taken and `overwrite` not set.
    pub async fn save(&mut self, name: &str, ttl: Option<Duration>, overwrite: bool) -> Result<()> {
        let options = contexts::SaveOptions { ttl_ns: ttl.map(nanoseconds), overwrite };
        let event = self.handle.save(name, &options).named("Context.save")?;
        OwnedEvent::new(event).finish("Context.save").await
    }

    /// Opens a saved context: tokens, chat and all that was computed. Each opening gives a context of its own.
    pub async fn open(model: &Model, name: &str) -> Result<Context> {
        let opening = contexts::Context::open(model.handle(), name).named("Context.open")?;
        let event = opening.ready();
        ready(event).await;
        let handle = opening.take().named("Context.open")?;
        forget(event);
        Ok(Context::new(handle, model.clone()))
    }

    /// The tenant's saved contexts, by name.
    pub fn saved() -> Result<Vec<SavedContext>> {
        contexts::list_saved().named("Context.saved")
    }

    /// Deletes a saved context. Contexts that were opened from it stay as they are.
    pub fn delete(name: &str) -> Result<()> {
        contexts::delete_saved(name).named("Context.delete")
    }

    /// All tokens, in order.
    pub fn tokens(&self) -> Vec<u32> {
        self.handle.tokens()
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.handle.length() as usize
    }

    /// Whether it has no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many positions are taken: those of its tokens, and those of tokens that were evicted before them.
    pub fn positions(&self) -> usize {
        self.handle.positions() as usize
    }

    /// How many tokens can be added before the model's context length is reached.
    pub fn room(&self) -> usize {
        (self.model.info().context_length as usize).saturating_sub(self.positions())
    }

    /// The model that it is one of.
    pub fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn handle(&self) -> &contexts::Context {
        &self.handle
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Context({} tokens)", self.len())
    }
}

/// The contract's number; one that is too large stays too large.
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
