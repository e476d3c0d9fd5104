// Written by `make bindings` from wit/; do not edit.

//! Forward passes: tokens after a context's last one are computed provisionally, the program looks at what the model says
//! of them, and keeps a part or nothing.
//!
//! Rows are numbered: row 0 is the context's last token, row `n` the n-th token of the pass. What is asked of a row is
//! about what comes after that token.

use super::abi::{Abi, Area, Arena, Load, Store};
use super::contexts::Context;
use super::generation::{Sampling, TokenLogProbability};
use super::types::{Error, Event, Token};

/// What is wanted of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub row: u32,
    /// Sample a token. It is not appended to anything; it counts as a generated token of the run.
    pub sampling: Option<Sampling>,
    /// Which number of the seed's stream to sample by: the first token of a generation has 0, the second 1, ...
    pub sample_index: u32,
    /// So many most likely tokens.
    pub top: u32,
    /// The log-probabilities of these tokens.
    pub given: Vec<Token>,
    /// The entropy of the distribution.
    pub entropy: bool,
    /// All logits, as the model gives them.
    pub logits: bool,
}

impl Abi for Request {
    const SIZE: usize = 96;
    const ALIGN: usize = 8;
}

impl Store for Request {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.row.store(at, arena);
        self.sampling.store(at.add(8), arena);
        self.sample_index.store(at.add(72), arena);
        self.top.store(at.add(76), arena);
        self.given.store(at.add(80), arena);
        self.entropy.store(at.add(88), arena);
        self.logits.store(at.add(89), arena);
    }
}

/// A pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The row that each token follows, which comes before it: 0 for the context's last token. A token sees the context
    /// and the tokens that it follows, directly and indirectly, and no other branch. Without it, each token follows the
    /// one before. A tree has at most 256 tokens; a line as many as the context has room for.
    pub parents: Option<Vec<u32>>,
    /// Where each token stands: after the one that it follows, but not necessarily right after, so that positions can be
    /// left out. Without it, right after. `unsupported` if the model's features do not have `evict`.
    pub positions: Option<Vec<u32>>,
    /// Report the log-probability of each token after what it follows.
    pub log_probabilities: bool,
    /// At most 512, which together ask for at most 16,384 most likely and given tokens, 64 samples and 8 rows of logits.
    pub requests: Vec<Request>,
}

impl Abi for Options {
    const SIZE: usize = 36;
    const ALIGN: usize = 4;
}

impl Store for Options {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.parents.store(at, arena);
        self.positions.store(at.add(12), arena);
        self.log_probabilities.store(at.add(24), arena);
        self.requests.store(at.add(28), arena);
    }
}

/// The answer to one request. Log-probabilities and entropy are in nats, and those of the model's own distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The token sampled; its log-probability is after penalties and bias, before temperature.
    pub sampled: Option<TokenLogProbability>,
    /// The most likely tokens, most likely first.
    pub top: Vec<TokenLogProbability>,
    /// One for each token given.
    pub given: Vec<f32>,
    pub entropy: Option<f32>,
    /// Two logits in each item, as the bits of f32, the first in the lower half; a last odd one beside a zero.
    pub logits: Vec<u64>,
}

impl Abi for Row {
    const SIZE: usize = 44;
    const ALIGN: usize = 4;
}

impl Load for Row {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            sampled: Load::load(at),
            top: Load::load(at.add(12)),
            given: Load::load(at.add(20)),
            entropy: Load::load(at.add(28)),
            logits: Load::load(at.add(36)),
        }
    }
}

/// What a pass has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// One for each token, if asked for.
    pub log_probabilities: Vec<f32>,
    /// One for each request, in their order.
    pub rows: Vec<Row>,
}

impl Abi for Findings {
    const SIZE: usize = 16;
    const ALIGN: usize = 4;
}

impl Load for Findings {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            log_probabilities: Load::load(at),
            rows: Load::load(at.add(8)),
        }
    }
}

/// One pass. The context is busy until the pass is committed, discarded or dropped: meanwhile it can be read and
/// forked, and forks have none of the pass's tokens. Dropping a pass discards it.
#[derive(Debug)]
pub struct Pass(u32);

impl Pass {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// The event that becomes ready when it is computed, or cannot be. The same at every call; it goes away with the pass.
    pub fn ready(&self) -> Event {
        #[link(wasm_import_module = "tartlet:inferlet/forward@0.1.0")]
        extern "C" {
            #[link_name = "[method]pass.ready"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// What it has found, once.
    pub fn read(&self) -> Result<Findings, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/forward@0.1.0")]
        extern "C" {
            #[link_name = "[method]pass.read"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Appends the tokens of some rows to the context: the first follows the context's last token, each other the one
    /// before it. What of them is computed is not computed again; the rest of the pass is forgotten.
    pub fn commit(&self, path: &[u32]) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/forward@0.1.0")]
        extern "C" {
            #[link_name = "[method]pass.commit"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = u32::list(path, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), list1 as u32, path.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Forgets the pass. No effect if it is committed.
    pub fn discard(&self) {
        #[link(wasm_import_module = "tartlet:inferlet/forward@0.1.0")]
        extern "C" {
            #[link_name = "[method]pass.discard"]
            fn call(_: u32);
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/forward@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]pass"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Pass {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Pass {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// Computes tokens at the end of the context, which must not be empty. As before a generation, the assistant's turn is
/// begun first if the last thing filled was a chat message of another role; that stays. Tokens count as a prompt's. A run
/// may have 64 passes at a time, which count until they are dropped.
pub fn forward(context: &Context, tokens: &[Token], options: &Options) -> Result<Pass, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/forward@0.1.0")]
    extern "C" {
        #[link_name = "forward"]
        fn call(_: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32);
    }
    let mut arena = Arena::default();
    let list1 = Token::list(tokens, &mut arena);
    let (flat3, flat4, flat5) = match &options.parents {
        Some(value) => {
            let list2 = u32::list(value, &mut arena);
            (1, list2 as u32, value.len() as u32)
        }
        None => (0, 0, 0),
    };
    let (flat7, flat8, flat9) = match &options.positions {
        Some(value) => {
            let list6 = u32::list(value, &mut arena);
            (1, list6 as u32, value.len() as u32)
        }
        None => (0, 0, 0),
    };
    let list10 = Request::list(&options.requests, &mut arena);
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(
            context.handle(), list1 as u32, tokens.len() as u32, flat3, flat4, flat5, flat7, flat8, flat9, options.log_probabilities as u32, list10 as u32, options.requests.len() as u32, result.at() as u32,
        );
        Load::load(result.at())
    }
}
