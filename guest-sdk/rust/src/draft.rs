//! What generations give: chunks as they come, and whole drafts.

use std::fmt;

use crate::error::{Error, ErrorCode, Result};
use crate::wit::generation::Finish;

pub use crate::wit::generation::{FinishReason, PositionLogProbabilities, TokenLogProbability, Usage};

/// A whole generation.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Without eos tokens, and without the string that stopped it.
    pub text: String,
    /// Sampled or forced, eos tokens included.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// What stopped it, when that was a string.
    pub stop_string: Option<String>,
    /// One for each token, if asked for.
    pub logprobs: Vec<PositionLogProbabilities>,
    /// What it used.
    pub usage: Usage,
    /// With a controller: the drafts of all sequences, this one the first. Otherwise empty.
    pub sequences: Vec<Draft>,
}

impl Draft {
    /// Whether it is a whole text of its constraint, and was not cut off by something else.
    pub fn is_whole(&self) -> bool {
        matches!(self.finish_reason, FinishReason::Complete | FinishReason::Eos)
    }

    /// The value that the text stands for as JSON, such as one of a schema's.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.text)
            .map_err(|error| Error::of(ErrorCode::Program, "Draft.json", format!("the text is not it: {error}")))
    }
}

impl fmt::Display for Draft {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FinishReason {
    /// The contract's spelling, such as `stop-token`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eos => "eos",
            Self::StopToken => "stop-token",
            Self::StopString => "stop-string",
            Self::Length => "length",
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
            Self::Deadlock => "deadlock",
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a generation has added since the chunk before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// Whole characters only.
    pub text: String,
    /// The tokens sampled or forced. Text may lag behind its tokens.
    pub tokens: Vec<u32>,
    /// One for each token, if asked for.
    pub logprobs: Vec<PositionLogProbabilities>,
    /// With a controller: whose it is; 0 is the context's own sequence.
    pub sequence: u32,
    /// With a controller: characters to drop from the end of the text so far, before `text` is added.
    pub text_backtrack: u32,
    /// With a controller: tokens to drop from the end of those so far.
    pub token_backtrack: u32,
}

/// What one sequence has generated so far.
#[derive(Default)]
pub(crate) struct Written {
    text: String,
    tokens: Vec<u32>,
    logprobs: Vec<PositionLogProbabilities>,
    finish: Option<Finish>,
}

impl Written {
    /// Takes back what the chunk takes back, and adds what it adds.
    pub fn add(&mut self, chunk: &Chunk, finish: Option<Finish>) {
        drop_characters(&mut self.text, chunk.text_backtrack);
        self.text.push_str(&chunk.text);
        self.tokens.truncate(self.tokens.len().saturating_sub(chunk.token_backtrack as usize));
        self.tokens.extend_from_slice(&chunk.tokens);
        self.logprobs.extend_from_slice(&chunk.logprobs);
        if finish.is_some() {
            self.finish = finish;
        }
    }

    /// The whole, once it has ended.
    pub fn draft(self) -> Option<Draft> {
        let finish = self.finish?;
        Some(Draft {
            text: self.text,
            tokens: self.tokens,
            finish_reason: finish.reason,
            stop_string: finish.stop_string,
            logprobs: self.logprobs,
            usage: finish.usage,
            sequences: Vec::new(),
        })
    }
}

/// Drops so many characters from the end of a text.
pub(crate) fn drop_characters(text: &mut String, count: u32) {
    for _ in 0..count {
        text.pop();
    }
}
