//! The run's variables: texts by name, which all that belongs to the run shares, and the client that launched it hears of.

use crate::error::{Error, ErrorCode, Named, Result};
use crate::event::OwnedEvent;
use crate::wit::store;

pub use store::{Swap, Variable, VariableVersion};

/// The variable of that name, if there is one.
pub fn get(name: &str) -> Option<Variable> {
    store::get_variable(name)
}

/// Writes a variable; its new version. Error: `QuotaExceeded` for more than the run may keep.
pub fn set(name: &str, value: &str) -> Result<u64> {
    store::set_variable(name, value).named("variables.set")
}

/// Adds to the end of a variable, which is empty if it does not exist; its new version. Errors as for `set`.
pub fn append(name: &str, value: &str) -> Result<u64> {
    store::append_variable(name, value).named("variables.append")
}

/// Writes a variable if it still has that version; 0 if it does not exist yet. Errors as for `set`.
pub fn compare_and_swap(name: &str, value: &str, version: u64) -> Result<Swap> {
    store::compare_and_swap_variable(name, value, version).named("variables.compare_and_swap")
}

/// The name and version of each variable, in the order in which they were first written.
pub fn versions() -> Vec<VariableVersion> {
    store::list_variables()
}

/// Waits until the variable's version is above that one, and reads it. Above 0 waits until it exists.
///
/// Error: `Deadlock`, at once, if everything in the run waits for such changes: nobody is left to make them.
pub async fn wait(name: &str, above: u64) -> Result<Variable> {
    let call = "variables.wait";
    OwnedEvent::new(store::variable_above(name, above).named(call)?).finish(call).await?;
    get(name).ok_or_else(|| Error::of(ErrorCode::Internal, call, "the variable has a version and no value"))
}
