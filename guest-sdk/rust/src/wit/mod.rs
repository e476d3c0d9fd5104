// Written by `make bindings` from wit/; do not edit.

//! The contract as it is: its types, and its functions as the host offers them. The rest of the SDK is made of these.

pub(crate) mod abi;
#[rustfmt::skip]
pub(crate) mod component_type;
#[rustfmt::skip]
pub mod constraints;
#[rustfmt::skip]
pub mod contexts;
#[rustfmt::skip]
pub mod controllers;
#[rustfmt::skip]
pub mod events;
#[rustfmt::skip]
pub mod forward;
#[rustfmt::skip]
pub mod generation;
#[rustfmt::skip]
pub mod log;
#[rustfmt::skip]
pub mod models;
#[rustfmt::skip]
pub mod runs;
#[rustfmt::skip]
pub mod steering;
#[rustfmt::skip]
pub mod stepping;
#[rustfmt::skip]
pub mod store;
#[rustfmt::skip]
pub mod types;
