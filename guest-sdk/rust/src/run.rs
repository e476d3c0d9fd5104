//! The run itself.

use crate::wit::runs;

pub use runs::{Limit, RunInfo};

/// Says who the run is: its id, inferlet, tenant and seed.
pub fn info() -> RunInfo {
    runs::info()
}

/// The run's limits, such as `max_tokens`, with what has been used of them by now. Exceeding one ends the run.
pub fn limits() -> Vec<Limit> {
    runs::limits()
}

/// The limit of that name.
pub fn limit(name: &str) -> Option<Limit> {
    limits().into_iter().find(|limit| limit.name == name)
}
