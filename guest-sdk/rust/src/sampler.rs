//! How the next token is chosen.

use crate::wit::generation::Sampling;

/// How the next token is chosen. The steps apply in this order: penalties and bias, the constraint, temperature, top-k,
/// top-p, min-p. The host checks the numbers when a generation starts.
///
/// ```ignore
/// let sampler = Sampler::top_p(0.7, 0.95).with_seed(7).with_repetition_penalty(1.1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    sampling: Sampling,
}

impl Sampler {
    /// Always takes the most likely token.
    pub fn greedy() -> Self {
        Self::temperature(0.0)
    }

    /// Draws from all tokens; below 1 likely ones become likelier, above 1 less so.
    pub fn temperature(temperature: f32) -> Self {
        Self {
            sampling: Sampling {
                temperature,
                top_k: 0,
                top_p: 1.0,
                min_p: 0.0,
                repetition_penalty: 1.0,
                presence_penalty: 0.0,
                frequency_penalty: 0.0,
                logit_bias: Vec::new(),
                seed: None,
            },
        }
    }

    /// Draws from the most likely tokens that together have probability `p` (nucleus sampling).
    pub fn top_p(temperature: f32, p: f32) -> Self {
        Self::temperature(temperature).with_top_p(p)
    }

    /// Draws from the `k` most likely tokens, at temperature 1.
    pub fn top_k(k: u32) -> Self {
        Self::temperature(1.0).with_top_k(k)
    }

    /// Draws from the tokens that are at least `p` times as likely as the most likely one, at temperature 1.
    pub fn min_p(p: f32) -> Self {
        Self::temperature(1.0).with_min_p(p)
    }

    /// 0 takes the most likely token, whatever else is set.
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.sampling.temperature = temperature;
        self
    }

    /// Only the `k` most likely tokens; 0 for all.
    pub fn with_top_k(mut self, k: u32) -> Self {
        self.sampling.top_k = k;
        self
    }

    /// Only the most likely tokens that together have this probability; 1 for all.
    pub fn with_top_p(mut self, p: f32) -> Self {
        self.sampling.top_p = p;
        self
    }

    /// Only tokens at least this fraction as likely as the most likely one; 0 for all.
    pub fn with_min_p(mut self, p: f32) -> Self {
        self.sampling.min_p = p;
        self
    }

    /// The same seed gives the same tokens, whatever else runs. Without one, the run draws it from its own.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.sampling.seed = Some(seed);
        self
    }

    /// Divides (or multiplies, if negative) the logits of tokens that the context holds; 1 for none.
    pub fn with_repetition_penalty(mut self, penalty: f32) -> Self {
        self.sampling.repetition_penalty = penalty;
        self
    }

    /// Subtracted from the logits of tokens generated so far.
    pub fn with_presence_penalty(mut self, penalty: f32) -> Self {
        self.sampling.presence_penalty = penalty;
        self
    }

    /// Subtracted once for each time that a token was generated so far.
    pub fn with_frequency_penalty(mut self, penalty: f32) -> Self {
        self.sampling.frequency_penalty = penalty;
        self
    }

    /// Adds to the logit of one token.
    pub fn with_bias(mut self, token: u32, bias: f32) -> Self {
        self.sampling.logit_bias.push((token, bias));
        self
    }

    pub(crate) fn to_wit(&self) -> &Sampling {
        &self.sampling
    }
}
