// Written by `make bindings` from wit/; do not edit.

//! What a controller hears and answers: the types of the world `controller`.
//!
//! A controller steers one generation. It hears what really happened in the last step while the model computes the next one,
//! and says what that is to append. A generation begins as one sequence, number 0; forks add more, and all of them are in one call.

use super::abi::{Abi, Arena, Load, Store};
use super::types::{Error, Event, Token};

/// What `start` answers.
#[derive(Clone, Debug, PartialEq)]
pub struct StartAnswer {
    /// Replaces the tokens of the context, if given.
    pub prompt: Option<Vec<Token>>,
    /// Report the log-probability of each sampled token and of this many most likely ones (at most 20).
    pub log_probabilities: Option<u32>,
}

impl Abi for StartAnswer {
    const SIZE: usize = 20;
    const ALIGN: usize = 4;
}

impl Store for StartAnswer {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.prompt.store(at, arena);
        self.log_probabilities.store(at.add(12), arena);
    }
}

/// The log-probability of a token.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogProbability {
    pub token: Token,
    /// Natural logarithm, before temperature, and after penalties, bias and mask.
    pub log_probability: f32,
}

impl Abi for TokenLogProbability {
    const SIZE: usize = 8;
    const ALIGN: usize = 4;
}

impl Load for TokenLogProbability {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            token: Load::load(at),
            log_probability: Load::load(at.add(4)),
        }
    }
}

/// Log-probabilities where a token was sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledLogProbabilities {
    pub chosen: TokenLogProbability,
    /// The most likely tokens, most likely first.
    pub top: Vec<TokenLogProbability>,
}

impl Abi for SampledLogProbabilities {
    const SIZE: usize = 16;
    const ALIGN: usize = 4;
}

impl Load for SampledLogProbabilities {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            chosen: Load::load(at),
            top: Load::load(at.add(8)),
        }
    }
}

/// What happened to a sequence since it was last decided on. At the first call for a sequence, and after a wait, that is nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Its number.
    pub sequence: u32,
    /// Tokens that were dropped from its end, of those that were there.
    pub backtrack: u32,
    /// Then appended.
    pub tokens: Vec<Token>,
    /// What was sampled, even if a splice has replaced it.
    pub sampled: Option<Token>,
    /// At the first call after a fork: the numbers of all that came of it, in the order of its branches. The first is that of the
    /// sequence which forked.
    pub siblings: Vec<u32>,
    /// Where it sampled, if `start` asked for them.
    pub log_probabilities: Option<SampledLogProbabilities>,
    /// The last decision could not be carried out, and has changed nothing. 16 of these in a row end the generation.
    pub refused: Option<Error>,
    /// The sequence has ended: the name of a `generation.finish-reason`. The decision on it is ignored. One
    /// that the controller has stopped is not told.
    pub finish_reason: Option<String>,
}

impl Abi for Outcome {
    const SIZE: usize = 88;
    const ALIGN: usize = 4;
}

impl Load for Outcome {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            sequence: Load::load(at),
            backtrack: Load::load(at.add(4)),
            tokens: Load::load(at.add(8)),
            sampled: Load::load(at.add(16)),
            siblings: Load::load(at.add(24)),
            log_probabilities: Load::load(at.add(32)),
            refused: Load::load(at.add(52)),
            finish_reason: Load::load(at.add(76)),
        }
    }
}

/// A change of what a step appends: some tokens are dropped, then others appended, which nobody samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Splice {
    /// It holds if one of these is sampled; empty: whatever is.
    pub when_sampled: Vec<Token>,
    /// Tokens to drop. If the step samples, this counts the sampled token, too: 1 drops only that, 0 keeps it.
    pub backtrack: u32,
    pub tokens: Vec<Token>,
}

impl Abi for Splice {
    const SIZE: usize = 20;
    const ALIGN: usize = 4;
}

impl Store for Splice {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.when_sampled.store(at, arena);
        self.backtrack.store(at.add(8), arena);
        self.tokens.store(at.add(12), arena);
    }
}

/// What a sequence does in its next step.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Sample a token. Without, the step only appends and drops what its one splice says.
    pub sample: bool,
    /// Only these tokens can be sampled; nothing: all.
    pub allow: Option<Vec<Token>>,
    /// Only tokens of this mask, too, by its `id`.
    pub mask: Option<u32>,
    /// Added to the logits of single tokens, besides the generation's own.
    pub bias: Vec<(Token, f32)>,
    /// Instead of the generation's own.
    pub temperature: Option<f32>,
    /// If it samples, the first whose condition holds counts; otherwise there is at most one, without a condition.
    pub splices: Vec<Splice>,
}

impl Abi for Branch {
    const SIZE: usize = 48;
    const ALIGN: usize = 4;
}

impl Store for Branch {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.sample.store(at, arena);
        self.allow.store(at.add(4), arena);
        self.mask.store(at.add(16), arena);
        self.bias.store(at.add(24), arena);
        self.temperature.store(at.add(32), arena);
        self.splices.store(at.add(40), arena);
    }
}

/// What a sequence does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Goes on: samples as the generation says.
    GoOn,
    /// Ends (no branch), goes on (one), or forks (more). The first branch is the sequence itself; each further one is a new sequence,
    /// which gets the next number, in the order of decisions and branches. Numbers are used up even if the fork is refused.
    Branches(Vec<Branch>),
    /// Gives up its place in the batch until one of these events is ready. They stay the controller's, to be freed.
    Wait(Vec<Event>),
}

impl Abi for Decision {
    const SIZE: usize = 12;
    const ALIGN: usize = 4;
}

impl Store for Decision {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        match self {
            Self::GoOn => at.write(0),
            Self::Branches(value) => {
                at.write(1);
                value.store(at.add(4), arena);
            }
            Self::Wait(value) => {
                at.write(2);
                value.store(at.add(4), arena);
            }
        }
    }
}
