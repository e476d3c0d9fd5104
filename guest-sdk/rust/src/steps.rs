//! Generating token by token, with the program in control.

use std::future::Future;
use std::marker::PhantomData;

use crate::constraint::Constraint;
use crate::context::{to_u32, Context};
use crate::draft::drop_characters;
use crate::error::{Error, ErrorCode, Named, Result};
use crate::executor::{forget, ready};
use crate::mask::Mask;
use crate::sampler::Sampler;
use crate::stop_condition::StopCondition;
use crate::wit::generation::{FinishReason, PositionLogProbabilities, Usage};
use crate::wit::stepping;
use crate::wit::types::Event;

pub use stepping::Splice;

const CALL: &str = "Context.steps";

/// A stepped generation that has not begun, made by `Context.steps`: `start` begins it.
#[must_use = "steps begin with start()"]
pub struct StepsRequest<'context> {
    context: Context,
    sampler: Sampler,
    stop: StopCondition,
    constraint: Option<Constraint>,
    mask: Option<Mask>,
    logprobs: Option<u32>,
    lifetime: PhantomData<&'context mut Context>,
}

impl<'context> StepsRequest<'context> {
    pub(crate) fn new(context: Context, sampler: Sampler, stop: StopCondition) -> Self {
        Self { context, sampler, stop, constraint: None, mask: None, logprobs: None, lifetime: PhantomData }
    }

    /// What is sampled follows the constraint from here on. What it does not allow can be forced, but then nothing can be
    /// sampled until it is taken back.
    pub fn constraint(mut self, constraint: Constraint) -> Self {
        self.constraint = Some(constraint);
        self
    }

    /// All that is sampled is in this set.
    pub fn mask(mut self, mask: &Mask) -> Self {
        self.mask = Some(mask.clone());
        self
    }

    /// Reports the log-probability of each sampled token, and of this many most likely ones (0 to 20).
    pub fn logprobs(mut self, top: u32) -> Self {
        self.logprobs = Some(top);
        self
    }

    /// Begins.
    pub async fn start(self) -> Result<Steps<'context>> {
        let compiled = match &self.constraint {
            Some(constraint) => Some(constraint.compile(self.context.model(), CALL).await?),
            None => None,
        };
        let options = stepping::Options {
            log_probabilities: self.logprobs,
            constraint: compiled.as_ref().map(|constraint| constraint.id()),
            mask: self.mask.as_ref().map(Mask::id),
        };
        let (sampling, stop) = (self.sampler.to_wit(), self.stop.to_wit());
        let handle = stepping::start(self.context.handle(), sampling, &stop, &options).named(CALL)?;
        Ok(Steps::new(self.context, handle, self.mask))
    }
}

/// A stepped generation. The model computes while the program decides. Dropping it ends it; the tokens stay in the context.
pub struct Steps<'context> {
    context: Context,
    handle: stepping::Steps,
    event: Event,
    /// The host knows it by its number.
    mask: Option<Mask>,
    text: String,
    tokens: Vec<u32>,
    finish_reason: Option<FinishReason>,
    /// A step was answered, and its outcome has not been taken in.
    is_left: bool,
    lifetime: PhantomData<&'context mut Context>,
}

/// What is wanted of one step that samples; all of it holds for this step alone.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Only these tokens.
    pub allow: Option<Vec<u32>>,
    /// Only tokens in this mask.
    pub mask: Option<Mask>,
    /// Added to the logits of single tokens.
    pub bias: Vec<(u32, f32)>,
    /// Added to the logits of all tokens of a mask; up to four masks.
    pub boosts: Vec<(Mask, f32)>,
    /// Instead of the sampler's.
    pub temperature: Option<f32>,
    /// The first whose condition holds is carried out.
    pub splices: Vec<Splice>,
}

/// What a step has really done.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Tokens dropped, of those that were there before the step.
    pub backtrack: u32,
    /// Tokens appended after that.
    pub tokens: Vec<u32>,
    /// The token that was sampled, even if a splice has replaced it.
    pub sampled: Option<u32>,
    /// Characters to drop from the end of the text so far, before `text` is added.
    pub text_backtrack: u32,
    /// Whole characters only; may lag behind the tokens.
    pub text: String,
    /// At the sampled token, if asked for.
    pub logprobs: Option<PositionLogProbabilities>,
    /// Why this was the last step, if it was.
    pub finish_reason: Option<FinishReason>,
    /// Set in the last step.
    pub usage: Option<Usage>,
}

impl<'context> Steps<'context> {
    fn new(context: Context, handle: stepping::Steps, mask: Option<Mask>) -> Self {
        let event = handle.ready();
        Self {
            context,
            handle,
            event,
            mask,
            text: String::new(),
            tokens: Vec::new(),
            finish_reason: None,
            is_left: false,
            lifetime: PhantomData,
        }
    }

    /// The text of the tokens so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tokens so far, of this generation.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Why it has ended, if it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason
    }

    /// What is generated on; it can be read and forked.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Samples a token, as the sampler says.
    pub async fn next(&mut self) -> Result<Outcome> {
        self.next_with(&Step::default()).await
    }

    /// Samples a token, as this step says.
    ///
    /// Errors: `InvalidArgument`, an argument is out of its range, nothing is left to be sampled, or more is to be dropped
    /// than there is, and nothing has changed; `DeadlineExceeded`, the program was late.
    pub async fn next_with(&mut self, step: &Step) -> Result<Outcome> {
        let answer = stepping::Answer {
            sample: true,
            allow: step.allow.clone(),
            mask: step.mask.as_ref().map(Mask::id),
            bias: step.bias.clone(),
            boosts: step.boosts.iter().map(|(mask, amount)| (mask.id(), *amount)).collect(),
            temperature: step.temperature,
            splices: step.splices.clone(),
        };
        self.answer(answer, "Steps.next").await
    }

    /// Appends a text, without sampling. What is forced in a row is computed together.
    pub async fn force(&mut self, text: &str) -> Result<Outcome> {
        let tokens = self.context.model().tokenize_for(text, "Steps.force")?;
        self.replace(0, tokens, "Steps.force").await
    }

    /// Appends tokens, without sampling.
    pub async fn force_tokens(&mut self, tokens: &[u32]) -> Result<Outcome> {
        self.replace(0, tokens.to_vec(), "Steps.force_tokens").await
    }

    /// Drops the last tokens, also of what the context held before, then appends others.
    pub async fn backtrack(&mut self, num_tokens: usize, then: &[u32]) -> Result<Outcome> {
        self.replace(to_u32(num_tokens), then.to_vec(), "Steps.backtrack").await
    }

    /// Forks context and steps between two steps. Both may sample at once. Without a seed, the run draws the child's.
    pub fn fork(&self, seed: Option<u64>) -> Result<Steps<'static>> {
        let call = "Steps.fork";
        if self.is_left {
            return Err(Error::of(ErrorCode::Unavailable, call, "a step is being carried out"));
        }
        let (context, handle) = self.handle.fork(seed).named(call)?;
        let mut child = Steps::new(Context::new(context, self.context.model().clone()), handle, self.mask.clone());
        child.text.clone_from(&self.text);
        child.tokens.clone_from(&self.tokens);
        Ok(child)
    }

    /// Waits for something else, such as a variable or another branch: that time is not counted as lateness.
    pub async fn wait<T>(&mut self, future: impl Future<Output = T>) -> T {
        self.handle.hold();
        future.await
    }

    /// Ends it.
    pub fn stop(self) {
        self.handle.stop();
    }

    async fn replace(&mut self, backtrack: u32, tokens: Vec<u32>, call: &'static str) -> Result<Outcome> {
        let mut splices = Vec::new();
        if backtrack > 0 || !tokens.is_empty() {
            splices.push(Splice { when_sampled: Vec::new(), backtrack, tokens });
        }
        let answer = stepping::Answer {
            sample: false,
            allow: None,
            mask: None,
            bias: Vec::new(),
            boosts: Vec::new(),
            temperature: None,
            splices,
        };
        self.answer(answer, call).await
    }

    /// Answers, waits for the outcome, and takes it in. What was left by a call that was given up is taken in first.
    async fn answer(&mut self, answer: stepping::Answer, call: &'static str) -> Result<Outcome> {
        if self.is_left {
            let _ = self.outcome(call).await; // if it was refused, whoever has asked for that is gone
        }
        self.handle.answer(&answer).named(call)?;
        self.is_left = true;
        self.outcome(call).await
    }

    async fn outcome(&mut self, call: &'static str) -> Result<Outcome> {
        ready(self.event).await;
        self.is_left = false;
        let outcome = self.handle.outcome().named(call)?;
        self.tokens.truncate(self.tokens.len().saturating_sub(outcome.backtrack as usize));
        self.tokens.extend_from_slice(&outcome.tokens);
        drop_characters(&mut self.text, outcome.text_backtrack);
        self.text.push_str(&outcome.text);
        self.finish_reason = outcome.finish.as_ref().map(|finish| finish.reason).or(self.finish_reason);
        Ok(Outcome {
            backtrack: outcome.backtrack,
            tokens: outcome.tokens,
            sampled: outcome.sampled,
            text_backtrack: outcome.text_backtrack,
            text: outcome.text,
            logprobs: outcome.log_probabilities,
            finish_reason: self.finish_reason,
            usage: outcome.finish.map(|finish| finish.usage),
        })
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        forget(self.event);
    }
}
