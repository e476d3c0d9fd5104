// Written by `make bindings` from wit/; do not edit.

//! Generating token by token, with the program in control.
//!
//! A program answers before each token: what may be sampled, what is taken back, what is written instead. The forward pass
//! of a token runs while the program works on its next answer, so one that thinks for less than that loses nothing. One
//! that takes longer delays nobody else: its context waits outside of the batch.

use super::abi::{Abi, Area, Arena, Load, Store};
use super::contexts::Context;
use super::generation::{Finish, PositionLogProbabilities, Sampling, StopConditions};
use super::types::{Error, Event, Token};

/// A change of what a step appends.
#[derive(Clone, Debug, PartialEq)]
pub struct Splice {
    /// Holds if one of these is sampled; empty: always. Must be empty in a step that samples nothing. At most 1,024.
    pub when_sampled: Vec<Token>,
    /// Drop so many tokens from the end. In a step that samples, this counts the sampled token, too: 0 keeps it, 1
    /// replaces it, 2 also drops the one before it. What was there before the first step can be dropped as well.
    pub backtrack: u32,
    /// Then append these. They are computed together, before anything else is sampled.
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

/// What a program wants of one step. Nothing of it lasts beyond that step, or concerns another context.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Sample a token. A step that does not only carries out its splice, if it has one.
    pub sample: bool,
    /// Only these tokens can be sampled. A list that is there must not be empty.
    pub allow: Option<Vec<Token>>,
    /// Only tokens in this mask of the run, by its `id`. All restrictions hold together, those of the sampling and of the
    /// constraint, too; where they leave nothing, the answer is refused.
    pub mask: Option<u32>,
    /// Added to the logits of single tokens, besides the sampling's own; at most 1,024.
    pub bias: Vec<(Token, f32)>,
    /// Added to the logits of all tokens of a mask of the run, by its `id`; at most 4.
    pub boosts: Vec<(u32, f32)>,
    /// The temperature of this step.
    pub temperature: Option<f32>,
    /// The first whose condition holds counts; at most 64, or one if nothing is sampled.
    pub splices: Vec<Splice>,
}

impl Abi for Answer {
    const SIZE: usize = 56;
    const ALIGN: usize = 4;
}

impl Store for Answer {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.sample.store(at, arena);
        self.allow.store(at.add(4), arena);
        self.mask.store(at.add(16), arena);
        self.bias.store(at.add(24), arena);
        self.boosts.store(at.add(32), arena);
        self.temperature.store(at.add(40), arena);
        self.splices.store(at.add(48), arena);
    }
}

/// What a step has really done.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Tokens dropped, of those that were there before the step.
    pub backtrack: u32,
    /// Tokens appended after that.
    pub tokens: Vec<Token>,
    /// The token that was sampled, even if a splice has replaced it.
    pub sampled: Option<Token>,
    /// Characters (Unicode scalar values) to drop from the end of the text so far, before `text` is added.
    pub text_backtrack: u32,
    /// Whole characters only; may lag behind the tokens.
    pub text: String,
    /// At the sampled token, if asked for.
    pub log_probabilities: Option<PositionLogProbabilities>,
    /// Set if this was the last step: a stop condition holds for what was appended.
    pub finish: Option<Finish>,
}

impl Abi for Outcome {
    const SIZE: usize = 128;
    const ALIGN: usize = 8;
}

impl Load for Outcome {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            backtrack: Load::load(at),
            tokens: Load::load(at.add(4)),
            sampled: Load::load(at.add(12)),
            text_backtrack: Load::load(at.add(20)),
            text: Load::load(at.add(24)),
            log_probabilities: Load::load(at.add(32)),
            finish: Load::load(at.add(56)),
        }
    }
}

/// What else is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Report the log-probability of each sampled token, and of this many most likely ones (at most 20).
    pub log_probabilities: Option<u32>,
    /// What is sampled follows this constraint of the run, by its `id`, from here on: it goes back and on with the text.
    /// A backtrack beyond its beginning is refused. What it does not allow can be spliced in, but nothing can be
    /// sampled then until it is taken back.
    pub constraint: Option<u32>,
    /// All that is sampled is in this mask of the run, by its `id`.
    pub mask: Option<u32>,
}

impl Abi for Options {
    const SIZE: usize = 24;
    const ALIGN: usize = 4;
}

impl Store for Options {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.log_probabilities.store(at, arena);
        self.constraint.store(at.add(8), arena);
        self.mask.store(at.add(16), arena);
    }
}

/// A stepped generation. Its context is busy as long as it lasts, but can be read, and forked between two steps.
/// Dropping it ends it. The run's limit `max_step_ms` ends it, with the error `deadline-exceeded`, if the program does
/// not answer for so long after an outcome.
#[derive(Debug)]
pub struct Steps(u32);

impl Steps {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// Answers, waits for the outcome, and reads it. The whole program waits. A refused answer is an error and changes
    /// nothing; another one may follow.
    pub fn next(&self, answer: &Answer) -> Result<Outcome, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
        extern "C" {
            #[link_name = "[method]steps.next"]
            fn call(_: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: f32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let (flat2, flat3, flat4) = match &answer.allow {
            Some(value) => {
                let list1 = Token::list(value, &mut arena);
                (1, list1 as u32, value.len() as u32)
            }
            None => (0, 0, 0),
        };
        let (flat5, flat6) = match &answer.mask {
            Some(value) => (1, *value),
            None => (0, 0),
        };
        let list7 = <(Token, f32)>::list(&answer.bias, &mut arena);
        let list8 = <(u32, f32)>::list(&answer.boosts, &mut arena);
        let (flat9, flat10) = match &answer.temperature {
            Some(value) => (1, *value),
            None => (0, 0.0),
        };
        let list11 = Splice::list(&answer.splices, &mut arena);
        let mut result = Area([0; 17]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(
                self.handle(), answer.sample as u32, flat2, flat3, flat4, flat5, flat6, list7 as u32, answer.bias.len() as u32, list8 as u32, answer.boosts.len() as u32, flat9, flat10, list11 as u32, answer.splices.len() as u32, result.at() as u32,
            );
            Load::load(result.at())
        }
    }

    /// Only answers: the outcome comes with `ready` and `outcome`, so that a program can have many going on.
    pub fn answer(&self, answer: &Answer) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
        extern "C" {
            #[link_name = "[method]steps.answer"]
            fn call(_: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: f32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let (flat2, flat3, flat4) = match &answer.allow {
            Some(value) => {
                let list1 = Token::list(value, &mut arena);
                (1, list1 as u32, value.len() as u32)
            }
            None => (0, 0, 0),
        };
        let (flat5, flat6) = match &answer.mask {
            Some(value) => (1, *value),
            None => (0, 0),
        };
        let list7 = <(Token, f32)>::list(&answer.bias, &mut arena);
        let list8 = <(u32, f32)>::list(&answer.boosts, &mut arena);
        let (flat9, flat10) = match &answer.temperature {
            Some(value) => (1, *value),
            None => (0, 0.0),
        };
        let list11 = Splice::list(&answer.splices, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(
                self.handle(), answer.sample as u32, flat2, flat3, flat4, flat5, flat6, list7 as u32, answer.bias.len() as u32, list8 as u32, answer.boosts.len() as u32, flat9, flat10, list11 as u32, answer.splices.len() as u32, result.at() as u32,
            );
            Load::load(result.at())
        }
    }

    /// The event that becomes ready with each outcome, refusal or end. The same at every call; it goes away with the
    /// steps.
    pub fn ready(&self) -> Event {
        #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
        extern "C" {
            #[link_name = "[method]steps.ready"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// What the step that was answered last has done, once. Before that, an error: `unavailable`.
    pub fn outcome(&self) -> Result<Outcome, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
        extern "C" {
            #[link_name = "[method]steps.outcome"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 17]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Forks the context and the steps between two steps: the child has the same tokens, penalties, constraint and stop
    /// conditions, and shares the logits, so that it can sample at once, as its own answer says. Without a seed, the run
    /// draws it.
    pub fn fork(&self, seed: Option<u64>) -> Result<(Context, Steps), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
        extern "C" {
            #[link_name = "[method]steps.fork"]
            fn call(_: u32, _: u32, _: u64, _: u32);
        }
        let (flat1, flat2) = match &seed {
            Some(value) => (1, *value),
            None => (0, 0),
        };
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), flat1, flat2, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Says that the program waits for something else now: until its next answer, its time is not counted.
    pub fn hold(&self) {
        #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
        extern "C" {
            #[link_name = "[method]steps.hold"]
            fn call(_: u32);
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// Ends it. What is kept for it is given back; the tokens stay in the context. No effect if it has ended.
    pub fn stop(&self) {
        #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
        extern "C" {
            #[link_name = "[method]steps.stop"]
            fn call(_: u32);
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]steps"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Steps {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Steps {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// Starts at the end of the context. Nothing is computed or sampled that no answer asks for, but what is in the context.
pub fn start(
    context: &Context,
    sampling: &Sampling,
    stop: &StopConditions,
    options: &Options,
) -> Result<Steps, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/stepping@0.1.0")]
    extern "C" {
        #[link_name = "start"]
        fn call(_: u32, _: u32);
    }
    let mut arena = Arena::default();
    let arguments = arena.take(120);
    // SAFETY: the arena has given room for them, at these offsets.
    unsafe {
        context.handle().store(arguments, &mut arena);
        sampling.store(arguments.add(8), &mut arena);
        stop.store(arguments.add(64), &mut arena);
        options.store(arguments.add(92), &mut arena);
    }
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(arguments as u32, result.at() as u32);
        Load::load(result.at())
    }
}
