// Written by `make bindings` from wit/; do not edit.

//! Generations that another program, a controller, steers token by token (world `controller`).

use super::abi::{Abi, Area, Arena, Load, Store};
use super::contexts::Context;
use super::generation::{Finish, Options, PositionLogProbabilities, Sampling, StopConditions};
use super::types::{Error, Event, Token};

/// What one sequence of the generation has produced since it was last read.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceChunk {
    /// Its number: 0 is the context's own; others are forks by the controller. The first chunk of a fork begins with all that was
    /// generated before it forked.
    pub sequence: u32,
    /// Characters (Unicode scalar values) at the end of the text read so far that were taken back.
    pub text_backtrack: u32,
    /// Then added. Whole characters only, without eos tokens.
    pub text: String,
    /// Tokens at the end of those read so far that were taken back.
    pub token_backtrack: u32,
    /// Then added: sampled or forced.
    pub tokens: Vec<Token>,
    /// One for each token that was sampled, kept or not, if asked for.
    pub log_probabilities: Vec<PositionLogProbabilities>,
    /// Set in the last chunk of the sequence.
    pub finish: Option<Finish>,
}

impl Abi for SequenceChunk {
    const SIZE: usize = 112;
    const ALIGN: usize = 8;
}

impl Load for SequenceChunk {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            sequence: Load::load(at),
            text_backtrack: Load::load(at.add(4)),
            text: Load::load(at.add(8)),
            token_backtrack: Load::load(at.add(16)),
            tokens: Load::load(at.add(20)),
            log_probabilities: Load::load(at.add(28)),
            finish: Load::load(at.add(40)),
        }
    }
}

/// What the generation has produced since it was last read.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlledChunks {
    /// At most one of each sequence, in the order of their numbers.
    pub chunks: Vec<SequenceChunk>,
    /// All sequences have ended, and nothing more comes.
    pub ended: bool,
}

impl Abi for ControlledChunks {
    const SIZE: usize = 12;
    const ALIGN: usize = 4;
}

impl Load for ControlledChunks {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            chunks: Load::load(at),
            ended: Load::load(at.add(8)),
        }
    }
}

/// One generation. Dropping it cancels it. What its sequence 0 generates is appended to the context; what forks generate is only
/// in their chunks.
#[derive(Debug)]
pub struct Controlled(u32);

impl Controlled {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// The event that becomes ready when there is something to read: any chunk if streaming, otherwise the end of all sequences. The
    /// same at every call; it goes away with the generation.
    pub fn ready(&self) -> Event {
        #[link(wasm_import_module = "tartlet:inferlet/controllers@0.1.0")]
        extern "C" {
            #[link_name = "[method]controlled.ready"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// What has come since the last read, which may be nothing. After the last chunks, an error.
    /// If the controller fails, is late for good, or cannot be started, the error says so, `program-failed` or
    /// `deadline-exceeded`, with what the controller has logged last.
    pub fn read(&self) -> Result<ControlledChunks, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/controllers@0.1.0")]
        extern "C" {
            #[link_name = "[method]controlled.read"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Ends all sequences at the next step, with what they have. No effect if it has ended.
    pub fn cancel(&self) {
        #[link(wasm_import_module = "tartlet:inferlet/controllers@0.1.0")]
        extern "C" {
            #[link_name = "[method]controlled.cancel"]
            fn call(_: u32);
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }
}

impl Drop for Controlled {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/controllers@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]controlled"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Controlled {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Controlled {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// Starts a generation at the end of the context. The controller is a program that the host knows by this name; `config` is for its
/// `start`, which may replace the context's tokens. How many controllers a run may have at once is limited.
pub fn control(
    context: &Context,
    controller: &str,
    config: &str,
    sampling: &Sampling,
    stop: &StopConditions,
    options: &Options,
) -> Result<Controlled, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/controllers@0.1.0")]
    extern "C" {
        #[link_name = "control"]
        fn call(_: u32, _: u32);
    }
    let mut arena = Arena::default();
    let arguments = arena.take(176);
    // SAFETY: the arena has given room for them, at these offsets.
    unsafe {
        context.handle().store(arguments, &mut arena);
        controller.store(arguments.add(4), &mut arena);
        config.store(arguments.add(12), &mut arena);
        sampling.store(arguments.add(24), &mut arena);
        stop.store(arguments.add(80), &mut arena);
        options.store(arguments.add(112), &mut arena);
    }
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(arguments as u32, result.at() as u32);
        Load::load(result.at())
    }
}
