//! How a generation guesses its next tokens, so that several come of one step.

use crate::error::Result;
use crate::model::Model;
use crate::wit::generation;

/// Guesses of the next tokens, for `Generate.speculation`. What is generated does not depend on them.
///
/// Where the context's last `ngram` tokens stood before, in the expected text or in the context itself, what followed
/// them there is guessed to follow now. It makes texts that copy faster: edits, quotes, code, loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speculation {
    expected: Expected,
    max_draft: u32,
    ngram: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    Text(String),
    Tokens(Vec<u32>),
}

impl Default for Speculation {
    fn default() -> Self {
        Self { expected: Expected::Tokens(Vec::new()), max_draft: 8, ngram: 3 }
    }
}

impl Speculation {
    /// Guesses from the context alone, at most 8 tokens at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// A text that is expected, at least in parts: at most 16,384 tokens. It is guessed from its beginning.
    pub fn expected(mut self, text: impl Into<String>) -> Self {
        self.expected = Expected::Text(text.into());
        self
    }

    /// The same as tokens.
    pub fn expected_tokens(mut self, tokens: impl Into<Vec<u32>>) -> Self {
        self.expected = Expected::Tokens(tokens.into());
        self
    }

    /// Tokens guessed for one step, at most: 1 to 32.
    pub fn max_draft(mut self, num_tokens: u32) -> Self {
        self.max_draft = num_tokens;
        self
    }

    /// How many of the last tokens must have stood there: 1 to 8.
    pub fn ngram(mut self, num_tokens: u32) -> Self {
        self.ngram = num_tokens;
        self
    }

    pub(crate) fn to_wit(&self, model: &Model, call: &'static str) -> Result<generation::Speculation> {
        let expected = match &self.expected {
            Expected::Text(text) => model.tokenize_for(text, call)?,
            Expected::Tokens(tokens) => tokens.clone(),
        };
        Ok(generation::Speculation { max_draft: self.max_draft, ngram: self.ngram, expected })
    }
}
