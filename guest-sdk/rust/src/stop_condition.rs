//! When a generation stops. The model's own eos tokens and the context length always stop it; `ignore_eos` lifts the former.

use crate::wit::generation::StopConditions;

/// Reasons to stop; the first that applies does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopCondition {
    max_len: Option<u32>,
    tokens: Vec<u32>,
    strings: Vec<String>,
    ignore_eos: bool,
}

impl StopCondition {
    /// Adds another reason to stop: whichever comes first counts. (It reads as "and stop at this, too".)
    pub fn and(mut self, other: StopCondition) -> Self {
        self.max_len = match (self.max_len, other.max_len) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        for token in other.tokens {
            self = self.with_token(token);
        }
        for string in other.strings {
            self = self.with_string(string);
        }
        self.ignore_eos |= other.ignore_eos;
        self
    }

    /// The same as `and`.
    pub fn or(self, other: StopCondition) -> Self {
        self.and(other)
    }

    fn with_token(mut self, token: u32) -> Self {
        if !self.tokens.contains(&token) {
            self.tokens.push(token);
        }
        self
    }

    fn with_string(mut self, string: String) -> Self {
        if !self.strings.contains(&string) {
            self.strings.push(string);
        }
        self
    }

    pub(crate) fn to_wit(&self) -> StopConditions {
        StopConditions {
            max_tokens: self.max_len,
            tokens: self.tokens.clone(),
            strings: self.strings.clone(),
            ignore_eos: self.ignore_eos,
        }
    }
}

/// Stops after so many generated tokens.
pub fn max_len(num_tokens: usize) -> StopCondition {
    let max_len = Some(u32::try_from(num_tokens).unwrap_or(u32::MAX));
    StopCondition { max_len, ..StopCondition::default() }
}

/// Stops when the output ends with any of these tokens or texts, such as `model.eos_tokens()` or `["\n\n", "END"]`.
///
/// A text may span several tokens; the output ends before it.
pub fn ends_with_any<E: Into<Ending>>(endings: impl IntoIterator<Item = E>) -> StopCondition {
    endings.into_iter().fold(StopCondition::default(), |condition, ending| match ending.into() {
        Ending::Token(token) => condition.with_token(token),
        Ending::Text(text) => condition.with_string(text),
    })
}

/// Goes on after the model's own eos tokens.
pub fn ignore_eos() -> StopCondition {
    StopCondition { ignore_eos: true, ..StopCondition::default() }
}

/// What an output can end with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Token(u32),
    Text(String),
}

impl From<u32> for Ending {
    fn from(token: u32) -> Self {
        Self::Token(token)
    }
}

impl From<&str> for Ending {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Ending {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
