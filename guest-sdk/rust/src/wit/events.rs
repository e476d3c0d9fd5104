// Written by `make bindings` from wit/; do not edit.

//! Waiting. Calls that take time give an event at once; `poll` waits for any of several. Each SDK turns this into its
//! language's own async.
//!
//! An event is level-triggered: once ready it stays ready, until it is dropped or (a generation's event) until what it
//! announced has been read. An id that the run does not hold ends the run with `invalid_handle`.

use super::abi::{Area, Arena, Load, Store};
use super::types::{Error, Event};

/// Waits until at least one of `events` is ready, or `timeout-ns` has passed, and returns the ready ones, in the order
/// given; an empty list means that the time has passed. A timeout of 0 only looks. Waiting for no event without a
/// timeout would be for ever, and ends the run with `deadlock`. Waiting without a timeout for nothing but what only the
/// run itself can bring about, such as changes of its variables, would be for ever, too: these events become ready at
/// once, and their outcome is the error `deadlock`.
pub fn poll(events: &[Event], timeout_ns: Option<u64>) -> Vec<Event> {
    #[link(wasm_import_module = "tartlet:inferlet/events@0.1.0")]
    extern "C" {
        #[link_name = "poll"]
        fn call(_: u32, _: u32, _: u32, _: u64, _: u32);
    }
    let mut arena = Arena::default();
    let list1 = Event::list(events, &mut arena);
    let (flat2, flat3) = match &timeout_ns {
        Some(value) => (1, *value),
        None => (0, 0),
    };
    let mut result = Area([0; 1]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(list1 as u32, events.len() as u32, flat2, flat3, result.at() as u32);
        Load::load(result.at())
    }
}

/// An event that becomes ready after `delay-ns` nanoseconds.
pub fn timer(delay_ns: u64) -> Event {
    #[link(wasm_import_module = "tartlet:inferlet/events@0.1.0")]
    extern "C" {
        #[link_name = "timer"]
        fn call(_: u64) -> u32;
    }
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe { call(delay_ns) }
}

/// What became of the operation behind a ready event (a timer's is always ok). Frees the event. An event that is not
/// ready yet is an error, `unavailable`, and stays.
pub fn outcome(event: Event) -> Result<(), Error> {
    #[link(wasm_import_module = "tartlet:inferlet/events@0.1.0")]
    extern "C" {
        #[link_name = "outcome"]
        fn call(_: u32, _: u32);
    }
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(event, result.at() as u32);
        Load::load(result.at())
    }
}

/// Frees the event. The operation behind it, if there is one, goes on.
pub fn drop_event(event: Event) {
    #[link(wasm_import_module = "tartlet:inferlet/events@0.1.0")]
    extern "C" {
        #[link_name = "drop-event"]
        fn call(_: u32);
    }
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe { call(event) }
}
