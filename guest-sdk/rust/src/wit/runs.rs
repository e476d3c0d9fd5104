// Written by `make bindings` from wit/; do not edit.

//! The run itself.

use super::abi::{Abi, Area, Load};

/// Who am I.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// The run's id.
    pub id: String,
    /// The inferlet's name.
    pub inferlet: String,
    /// The tenant on whose behalf it runs.
    pub tenant: String,
    /// What the run's random choices come from: the same seed and input give the same run.
    pub seed: u64,
}

impl Abi for RunInfo {
    const SIZE: usize = 32;
    const ALIGN: usize = 8;
}

impl Load for RunInfo {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            id: Load::load(at),
            inferlet: Load::load(at.add(8)),
            tenant: Load::load(at.add(16)),
            seed: Load::load(at.add(24)),
        }
    }
}

/// One limit, and what has been used of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// As the host's own settings call it, for example `max_tokens`, `max_kv_pages`, `max_wall_ms`.
    pub name: String,
    pub used: u64,
    /// Nothing: not limited.
    pub allowed: Option<u64>,
}

impl Abi for Limit {
    const SIZE: usize = 32;
    const ALIGN: usize = 8;
}

impl Load for Limit {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            name: Load::load(at),
            used: Load::load(at.add(8)),
            allowed: Load::load(at.add(16)),
        }
    }
}

/// Who am I.
pub fn info() -> RunInfo {
    #[link(wasm_import_module = "tartlet:inferlet/runs@0.1.0")]
    extern "C" {
        #[link_name = "info"]
        fn call(_: u32);
    }
    let mut result = Area([0; 4]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(result.at() as u32);
        Load::load(result.at())
    }
}

/// The run's limits. Exceeding one ends the run.
pub fn limits() -> Vec<Limit> {
    #[link(wasm_import_module = "tartlet:inferlet/runs@0.1.0")]
    extern "C" {
        #[link_name = "limits"]
        fn call(_: u32);
    }
    let mut result = Area([0; 1]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(result.at() as u32);
        Load::load(result.at())
    }
}
