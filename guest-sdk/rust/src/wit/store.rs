// Written by `make bindings` from wit/; do not edit.

//! What a run keeps by name: its variables, which all that belongs to the run can read, write and wait for. They are gone
//! with the run. Every write is told to the client that launched it.
//!
//! Values are text. How many variables there may be, and how large all names and values together, is limited: what would
//! exceed that is refused with `quota-exceeded`. Each write counts towards the run's output limit with the name and the whole
//! value. A name has 1 to 256 bytes.

use super::abi::{Abi, Area, Load};
use super::types::{Error, Event};

/// A variable as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// How many times it has been written: 1 after the first time.
    pub version: u64,
    pub value: String,
}

impl Abi for Variable {
    const SIZE: usize = 16;
    const ALIGN: usize = 8;
}

impl Load for Variable {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            version: Load::load(at),
            value: Load::load(at.add(8)),
        }
    }
}

/// What became of a compare-and-swap.
#[derive(Clone, Debug, PartialEq)]
pub struct Swap {
    /// Whether the value was written.
    pub written: bool,
    /// If it was, the new version and value; if not, those that were found. Version 0 is a variable that does not exist.
    pub now: Variable,
}

impl Abi for Swap {
    const SIZE: usize = 24;
    const ALIGN: usize = 8;
}

impl Load for Swap {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            written: Load::load(at),
            now: Load::load(at.add(8)),
        }
    }
}

/// A variable's name and version.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableVersion {
    pub name: String,
    pub version: u64,
}

impl Abi for VariableVersion {
    const SIZE: usize = 16;
    const ALIGN: usize = 8;
}

impl Load for VariableVersion {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            name: Load::load(at),
            version: Load::load(at.add(8)),
        }
    }
}

/// The variable of that name, if there is one.
pub fn get_variable(name: &str) -> Option<Variable> {
    #[link(wasm_import_module = "tartlet:inferlet/store@0.1.0")]
    extern "C" {
        #[link_name = "get-variable"]
        fn call(_: u32, _: u32, _: u32);
    }
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(name.as_ptr() as u32, name.len() as u32, result.at() as u32);
        Load::load(result.at())
    }
}

/// Writes a variable, which need not exist. The new version.
pub fn set_variable(name: &str, value: &str) -> Result<u64, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/store@0.1.0")]
    extern "C" {
        #[link_name = "set-variable"]
        fn call(_: u32, _: u32, _: u32, _: u32, _: u32);
    }
    let mut result = Area([0; 4]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(
            name.as_ptr() as u32, name.len() as u32, value.as_ptr() as u32, value.len() as u32, result.at() as u32,
        );
        Load::load(result.at())
    }
}

/// Adds to the end of a variable; one that does not exist is empty. The new version.
pub fn append_variable(name: &str, value: &str) -> Result<u64, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/store@0.1.0")]
    extern "C" {
        #[link_name = "append-variable"]
        fn call(_: u32, _: u32, _: u32, _: u32, _: u32);
    }
    let mut result = Area([0; 4]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(
            name.as_ptr() as u32, name.len() as u32, value.as_ptr() as u32, value.len() as u32, result.at() as u32,
        );
        Load::load(result.at())
    }
}

/// Writes a variable if it still has that version; 0 if it does not exist yet.
pub fn compare_and_swap_variable(name: &str, value: &str, version: u64) -> Result<Swap, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/store@0.1.0")]
    extern "C" {
        #[link_name = "compare-and-swap-variable"]
        fn call(_: u32, _: u32, _: u32, _: u32, _: u64, _: u32);
    }
    let mut result = Area([0; 4]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(
            name.as_ptr() as u32, name.len() as u32, value.as_ptr() as u32, value.len() as u32, version, result.at() as u32,
        );
        Load::load(result.at())
    }
}

/// All variables, in the order in which they were first written.
pub fn list_variables() -> Vec<VariableVersion> {
    #[link(wasm_import_module = "tartlet:inferlet/store@0.1.0")]
    extern "C" {
        #[link_name = "list-variables"]
        fn call(_: u32);
    }
    let mut result = Area([0; 1]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(result.at() as u32);
        Load::load(result.at())
    }
}

/// An event that becomes ready as soon as the variable's version is above `version`, which it may be already. The
/// variable need not exist: above 0 waits for its first write.
pub fn variable_above(name: &str, version: u64) -> Result<Event, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/store@0.1.0")]
    extern "C" {
        #[link_name = "variable-above"]
        fn call(_: u32, _: u32, _: u64, _: u32);
    }
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(name.as_ptr() as u32, name.len() as u32, version, result.at() as u32);
        Load::load(result.at())
    }
}
