//! Going through a constraint without a generation: for sampling, scoring or splicing of one's own.

use crate::constraint::Constraint;
use crate::error::{Error, ErrorCode, Named, Result};
use crate::executor::{forget, ready};
use crate::mask::Mask;
use crate::model::Model;
use crate::wit::constraints;
use crate::wit::types::Event;

pub use constraints::Place;

/// A place in a constraint. Each move waits until the host knows what it comes to, beside the model's work.
pub struct Matcher {
    handle: constraints::Matcher,
    event: Event,
    /// Nothing after a move that failed or was given up.
    place: Option<Place>,
}

impl Matcher {
    /// Begins at the beginning of a constraint.
    ///
    /// Errors: `InvalidArgument`, the constraint has an error; `QuotaExceeded`, compiling it takes too much, or the tenant
    /// follows too many.
    pub async fn begin(model: &Model, constraint: &Constraint) -> Result<Self> {
        let call = "Matcher.begin";
        let compiled = constraint.compile(model, call).await?;
        Self::arrived(constraints::Matcher::begin(&compiled).named(call)?, call).await
    }

    async fn arrived(handle: constraints::Matcher, call: &'static str) -> Result<Self> {
        let event = handle.ready();
        let mut matcher = Self { handle, event, place: None };
        matcher.arrive(call).await?;
        Ok(matcher)
    }

    /// Where it is: the tokens that are forced, whether it may end, whether it is complete, and why nothing is allowed.
    /// Error: `Unavailable` after a move that was given up.
    pub fn place(&self) -> Result<&Place> {
        let message = "its last move was not waited for";
        self.place.as_ref().ok_or_else(|| Error::of(ErrorCode::Unavailable, "Matcher.place", message))
    }

    /// The tokens that may come next, eos tokens where it may end; of what is forced, the first token alone.
    pub fn mask(&self) -> Result<Mask> {
        self.handle.mask().map(Mask::from_handle).named("Matcher.mask")
    }

    /// Goes on by tokens, allowed or not.
    pub async fn advance(&mut self, tokens: &[u32]) -> Result<()> {
        self.handle.advance(tokens).named("Matcher.advance")?;
        self.arrive("Matcher.advance").await
    }

    /// Goes back over the last tokens.
    pub async fn rollback(&mut self, count: u32) -> Result<()> {
        self.handle.rollback(count).named("Matcher.rollback")?;
        self.arrive("Matcher.rollback").await
    }

    /// Another one at the same place, which goes its own way.
    pub async fn fork(&self) -> Result<Self> {
        Self::arrived(self.handle.fork().named("Matcher.fork")?, "Matcher.fork").await
    }

    async fn arrive(&mut self, call: &'static str) -> Result<()> {
        self.place = None;
        ready(self.event).await;
        self.place = Some(self.handle.place().named(call)?);
        Ok(())
    }
}

impl Drop for Matcher {
    fn drop(&mut self) {
        forget(self.event);
    }
}
