//! Operations of the host's that take time: each has an event.

use crate::error::{Named, Result};
use crate::executor::{forget, ready};
use crate::wit::events;
use crate::wit::types::Event;

/// An event that is freed when it is dropped.
pub(crate) struct OwnedEvent {
    id: Option<Event>,
}

impl OwnedEvent {
    pub(crate) fn new(id: Event) -> Self {
        Self { id: Some(id) }
    }

    /// Waits for the operation, and says what became of it, as the SDK's own `call`.
    pub(crate) async fn finish(mut self, call: &'static str) -> Result<()> {
        let Some(id) = self.id else { return Ok(()) };
        ready(id).await;
        self.id = None; // `outcome` frees it
        events::outcome(id).named(call)
    }
}

impl Drop for OwnedEvent {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            forget(id);
            events::drop_event(id);
        }
    }
}
