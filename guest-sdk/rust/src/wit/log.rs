// Written by `make bindings` from wit/; do not edit.

//! What the run tells people. Both count towards the run's output limit.

use super::abi::{Abi, Arena, Store};

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl Abi for Level {
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
}

impl Store for Level {
    unsafe fn store(&self, at: *mut u8, _arena: &mut Arena) {
        at.write(*self as u8);
    }
}

/// Output text, as it is: newlines are the program's own.
pub fn print(text: &str) {
    #[link(wasm_import_module = "tartlet:inferlet/log@0.1.0")]
    extern "C" {
        #[link_name = "print"]
        fn call(_: u32, _: u32);
    }
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe { call(text.as_ptr() as u32, text.len() as u32) }
}

/// One log line.
pub fn log(level: Level, message: &str) {
    #[link(wasm_import_module = "tartlet:inferlet/log@0.1.0")]
    extern "C" {
        #[link_name = "log"]
        fn call(_: u32, _: u32, _: u32);
    }
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe { call(level as u32, message.as_ptr() as u32, message.len() as u32) }
}
