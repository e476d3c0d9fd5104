// Written by `make bindings` from wit/; do not edit.

//! Generating text from a context.

use super::abi::{Abi, Area, Arena, Load, Store};
use super::contexts::Context;
use super::types::{Error, Event, Token};

/// How the next token is chosen. The steps apply in this order: penalties and bias, constraint, temperature, top-k,
/// top-p, min-p.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the most likely token (greedy), whatever the other fields say.
    pub temperature: f32,
    /// Only the k most likely tokens; 0 for all.
    pub top_k: u32,
    /// Only the most likely tokens that together have this probability; 1 for all.
    pub top_p: f32,
    /// Only tokens at least this fraction as likely as the most likely one; 0 for all.
    pub min_p: f32,
    /// Divides (or multiplies, if negative) the logits of tokens that the context holds; 1 for none.
    pub repetition_penalty: f32,
    /// Subtracted from the logits of tokens generated so far; 0 for none.
    pub presence_penalty: f32,
    /// Subtracted once for each time that a token was generated so far; 0 for none.
    pub frequency_penalty: f32,
    /// Added to the logits of single tokens.
    pub logit_bias: Vec<(Token, f32)>,
    /// The same seed gives the same tokens, whatever else runs. Without one, the run draws it.
    pub seed: Option<u64>,
}

impl Abi for Sampling {
    const SIZE: usize = 56;
    const ALIGN: usize = 8;
}

impl Store for Sampling {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.temperature.store(at, arena);
        self.top_k.store(at.add(4), arena);
        self.top_p.store(at.add(8), arena);
        self.min_p.store(at.add(12), arena);
        self.repetition_penalty.store(at.add(16), arena);
        self.presence_penalty.store(at.add(20), arena);
        self.frequency_penalty.store(at.add(24), arena);
        self.logit_bias.store(at.add(28), arena);
        self.seed.store(at.add(40), arena);
    }
}

/// When to stop. Whatever happens first counts; the context length always does.
#[derive(Clone, Debug, PartialEq)]
pub struct StopConditions {
    /// At most this many tokens; without it, up to the context length.
    pub max_tokens: Option<u32>,
    /// Stop after any of these tokens.
    pub tokens: Vec<Token>,
    /// Stop when the text contains any of these, even when it spans several tokens.
    pub strings: Vec<String>,
    /// Go on after the model's own eos tokens.
    pub ignore_eos: bool,
}

impl Abi for StopConditions {
    const SIZE: usize = 28;
    const ALIGN: usize = 4;
}

impl Store for StopConditions {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.max_tokens.store(at, arena);
        self.tokens.store(at.add(8), arena);
        self.strings.store(at.add(16), arena);
        self.ignore_eos.store(at.add(24), arena);
    }
}

/// How the next tokens are guessed. Where the context's last tokens stood before, in the expected text or in the context
/// itself, what followed them there is guessed to follow now. The model checks a guess in one step, and the sampler
/// chooses each token as always: a guess that is right saves a step, one that is wrong costs the rows that were computed
/// for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Speculation {
    /// Tokens guessed for one step, at most: 1 to 32. Fewer, the less comes of them.
    pub max_draft: u32,
    /// How many of the last tokens must have stood there: 1 to 8.
    pub ngram: u32,
    /// A text that is expected, at least in parts, such as the one that is to be edited: at most 16,384 tokens. The
    /// generation is guessed to begin with it.
    pub expected: Vec<Token>,
}

impl Abi for Speculation {
    const SIZE: usize = 16;
    const ALIGN: usize = 4;
}

impl Store for Speculation {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.max_draft.store(at, arena);
        self.ngram.store(at.add(4), arena);
        self.expected.store(at.add(8), arena);
    }
}

/// What else is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Announce what comes through the event; otherwise the event becomes ready once, at the end.
    pub streaming: bool,
    /// If streaming: nanoseconds from a read to the next announcement, at least, but for the end. What comes meanwhile
    /// joins the next chunk. 0 announces every token; the fewer chunks, the less of the processor a program takes from
    /// the model.
    pub chunk_interval_ns: u64,
    /// Report the log-probability of each chosen token and of this many most likely ones (at most 20).
    pub log_probabilities: Option<u32>,
    /// Generate only what this constraint of the run allows, by its `id`. It must be compiled. The model's eos tokens are
    /// allowed where the constraint may end.
    pub constraint: Option<u32>,
    /// Guess the next tokens, so that several come of one step. What is generated does not depend on it.
    pub speculation: Option<Speculation>,
    /// Sample only tokens of this mask of the run, by its `id`, besides what the constraint allows. Where both leave
    /// nothing, it ends as `complete` if the constraint may end, and with an error otherwise.
    pub mask: Option<u32>,
}

impl Abi for Options {
    const SIZE: usize = 64;
    const ALIGN: usize = 8;
}

impl Store for Options {
    unsafe fn store(&self, at: *mut u8, arena: &mut Arena) {
        self.streaming.store(at, arena);
        self.chunk_interval_ns.store(at.add(8), arena);
        self.log_probabilities.store(at.add(16), arena);
        self.constraint.store(at.add(24), arena);
        self.speculation.store(at.add(32), arena);
        self.mask.store(at.add(52), arena);
    }
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FinishReason {
    /// The model produced one of its eos tokens.
    Eos,
    /// It produced one of the tokens asked for.
    StopToken,
    /// The text contains one of the strings asked for.
    StopString,
    /// The greatest number of tokens, or the context length, was reached.
    Length,
    /// The constraint allows nothing more.
    Complete,
    /// It was cancelled.
    Cancelled,
    /// Its controller stopped it.
    Stopped,
    /// All of the run waited, and nobody was left who could end that.
    Deadlock,
}

impl Abi for FinishReason {
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
}

impl Load for FinishReason {
    unsafe fn load(at: *const u8) -> Self {
        match at.read() {
            0 => Self::Eos,
            1 => Self::StopToken,
            2 => Self::StopString,
            3 => Self::Length,
            4 => Self::Complete,
            5 => Self::Cancelled,
            6 => Self::Stopped,
            _ => Self::Deadlock,
        }
    }
}

/// What a generation used.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// Tokens in the context when it began.
    pub prompt_tokens: u32,
    /// Of these, tokens whose keys and values were there already: from a fork, a flush, an earlier generation, a saved
    /// context, or the prefix cache.
    pub cached_tokens: u32,
    /// Tokens generated, forced ones included.
    pub generated_tokens: u32,
    /// Of these, tokens that the constraint left no choice about: they were appended without being sampled.
    pub forced_tokens: u32,
    /// Tokens guessed by speculation.
    pub draft_tokens: u32,
    /// Of these, tokens that were generated indeed: they took no step of their own.
    pub accepted_tokens: u32,
    /// Pages that the context held at the end.
    pub pages: u32,
    /// Of these, pages that it shared with other contexts.
    pub shared_pages: u32,
    /// Nanoseconds from the call to the first token, and to the end.
    pub first_token_ns: u64,
    pub total_ns: u64,
}

impl Abi for Usage {
    const SIZE: usize = 48;
    const ALIGN: usize = 8;
}

impl Load for Usage {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            prompt_tokens: Load::load(at),
            cached_tokens: Load::load(at.add(4)),
            generated_tokens: Load::load(at.add(8)),
            forced_tokens: Load::load(at.add(12)),
            draft_tokens: Load::load(at.add(16)),
            accepted_tokens: Load::load(at.add(20)),
            pages: Load::load(at.add(24)),
            shared_pages: Load::load(at.add(28)),
            first_token_ns: Load::load(at.add(32)),
            total_ns: Load::load(at.add(40)),
        }
    }
}

/// The log-probability of a token.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogProbability {
    pub token: Token,
    /// Natural logarithm, before temperature and after penalties, bias and constraint: a forced token has 0.
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

/// Log-probabilities at one generated token.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionLogProbabilities {
    pub chosen: TokenLogProbability,
    /// The most likely tokens, most likely first.
    pub top: Vec<TokenLogProbability>,
}

impl Abi for PositionLogProbabilities {
    const SIZE: usize = 16;
    const ALIGN: usize = 4;
}

impl Load for PositionLogProbabilities {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            chosen: Load::load(at),
            top: Load::load(at.add(8)),
        }
    }
}

/// How a generation ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    pub reason: FinishReason,
    /// What stopped it, when that was a string.
    pub stop_string: Option<String>,
    pub usage: Usage,
}

impl Abi for Finish {
    const SIZE: usize = 64;
    const ALIGN: usize = 8;
}

impl Load for Finish {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            reason: Load::load(at),
            stop_string: Load::load(at.add(4)),
            usage: Load::load(at.add(16)),
        }
    }
}

/// What a generation has produced since it was last read.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Whole characters only; without eos tokens, and without the string that stopped it.
    pub text: String,
    /// The tokens sampled or forced, eos tokens included. Text may lag behind its tokens.
    pub tokens: Vec<Token>,
    /// One for each token, if asked for.
    pub log_probabilities: Vec<PositionLogProbabilities>,
    /// Set in the last chunk.
    pub finish: Option<Finish>,
}

impl Abi for Chunk {
    const SIZE: usize = 96;
    const ALIGN: usize = 8;
}

impl Load for Chunk {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            text: Load::load(at),
            tokens: Load::load(at.add(8)),
            log_probabilities: Load::load(at.add(16)),
            finish: Load::load(at.add(24)),
        }
    }
}

/// One generation. Dropping it cancels it. Its tokens are appended to the context as they come; the token that
/// stopped it stays in the context.
#[derive(Debug)]
pub struct Generation(u32);

impl Generation {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// The event that becomes ready when there is something to read: any chunk if streaming, otherwise the end. The same
    /// at every call; it goes away with the generation.
    pub fn ready(&self) -> Event {
        #[link(wasm_import_module = "tartlet:inferlet/generation@0.1.0")]
        extern "C" {
            #[link_name = "[method]generation.ready"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// What has come since the last read, which may be nothing. After the last chunk, an error.
    pub fn read(&self) -> Result<Chunk, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/generation@0.1.0")]
        extern "C" {
            #[link_name = "[method]generation.read"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 13]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Waits until there is something to read, and reads it: a poll of `ready` and a `read` in one call. The whole
    /// program waits, so this is for when it has nothing else to do.
    pub fn next(&self) -> Result<Chunk, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/generation@0.1.0")]
        extern "C" {
            #[link_name = "[method]generation.next"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 13]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Ends it at the next step, with what it has. No effect if it has ended.
    pub fn cancel(&self) {
        #[link(wasm_import_module = "tartlet:inferlet/generation@0.1.0")]
        extern "C" {
            #[link_name = "[method]generation.cancel"]
            fn call(_: u32);
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/generation@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]generation"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Generation {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Generation {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// Starts a generation at the end of the context.
pub fn generate(
    context: &Context,
    sampling: &Sampling,
    stop: &StopConditions,
    options: &Options,
) -> Result<Generation, Error> {
    #[link(wasm_import_module = "tartlet:inferlet/generation@0.1.0")]
    extern "C" {
        #[link_name = "generate"]
        fn call(_: u32, _: u32);
    }
    let mut arena = Arena::default();
    let arguments = arena.take(160);
    // SAFETY: the arena has given room for them, at these offsets.
    unsafe {
        context.handle().store(arguments, &mut arena);
        sampling.store(arguments.add(8), &mut arena);
        stop.store(arguments.add(64), &mut arena);
        options.store(arguments.add(96), &mut arena);
    }
    let mut result = Area([0; 3]);
    // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
    unsafe {
        call(arguments as u32, result.at() as u32);
        Load::load(result.at())
    }
}
