//! Controllers: programs that steer the generations of others, token by token.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{from_host, Error, Named, Result};
use crate::mask::Mask;
use crate::time::nanoseconds;
use crate::wit::types::Event;
use crate::wit::{events, steering, store};

pub use crate::wit::steering::{SampledLogProbabilities, Splice};

const CALL: &str = "Controller.step";

/// What steers a generation. One value steers one sequence, and is cloned when that forks.
///
/// Mark the `impl` with `#[inferlet::controller]`.
pub trait Controller: Clone + 'static {
    /// Begins. `config` is what whoever starts the generation has given, JSON as a rule; `prompt` are the context's tokens.
    fn start(config: &str, prompt: &[u32]) -> Result<Start<Self>>;

    /// Decides what the sequence does next: after each step, while the model computes the next one.
    fn step(&mut self, sequence: &Sequence, info: &StepInfo) -> Result<Decision>;

    /// Hears that the sequence has ended, unless it was this controller who stopped it.
    fn end(&mut self, _sequence: &Sequence, _info: &StepInfo) {}
}

/// How a generation begins.
pub struct Start<C> {
    /// What steers its first sequence.
    pub controller: C,
    /// Replaces the tokens of the context.
    pub prompt: Option<Vec<u32>>,
    /// Report the log-probability of each sampled token, and of this many most likely ones (at most 20).
    pub logprobs: Option<u32>,
}

impl<C> From<C> for Start<C> {
    fn from(controller: C) -> Self {
        Self { controller, prompt: None, logprobs: None }
    }
}

/// One sequence of the generation, as it really is: what was sampled, forced and taken back is in it.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its number: 0 is the first, forks have others.
    pub id: u32,
    /// All tokens, those of the prompt too.
    pub tokens: Vec<u32>,
    /// Tokens of the prompt.
    pub prompt_length: usize,
}

impl Sequence {
    /// The tokens after the prompt.
    pub fn generated(&self) -> &[u32] {
        self.tokens.get(self.prompt_length..).unwrap_or(&[])
    }
}

/// What has happened to a sequence in its last step. At the first call, and after a wait, that is nothing.
#[derive(Clone, Debug)]
pub struct StepInfo {
    /// Tokens that were dropped from the end.
    pub backtrack: u32,
    /// Then appended.
    pub tokens: Vec<u32>,
    /// What was sampled, even if a splice has replaced it.
    pub sampled: Option<u32>,
    /// At the first call after a fork: the ids of all that came of it, in the order of the branches.
    pub siblings: Vec<u32>,
    /// Where it sampled, if `Start.logprobs` asks for them.
    pub logprobs: Option<SampledLogProbabilities>,
    /// The last decision could not be carried out, and has changed nothing.
    pub refused: Option<Error>,
    /// For `Controller.end`: why the sequence has ended, such as `length`.
    pub finish_reason: Option<String>,
}

/// What a sequence does next.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Samples as the generation says.
    GoOn,
    /// Goes on in some way.
    Branch(Branch),
    /// Forks: the first branch is the sequence itself.
    Fork(Vec<Branch>),
    /// Gives up its place in the batch until a variable of the run has changed, or a time has passed.
    Wait(Wait),
    /// Ends.
    Stop,
}

/// What a sequence does in its next step.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Without, the step only does what its one splice says.
    pub sample: bool,
    /// Only these tokens can be sampled.
    pub allow: Option<Vec<u32>>,
    /// Only tokens of this set, too.
    pub mask: Option<Mask>,
    /// Added to the logits of single tokens.
    pub bias: Vec<(u32, f32)>,
    /// Instead of the generation's own.
    pub temperature: Option<f32>,
    /// If it samples, the first whose condition holds counts.
    pub splices: Vec<Splice>,
}

impl Default for Branch {
    fn default() -> Self {
        Self { sample: true, allow: None, mask: None, bias: Vec::new(), temperature: None, splices: Vec::new() }
    }
}

impl Branch {
    /// Drops so many tokens and appends these, without sampling.
    pub fn force(tokens: impl Into<Vec<u32>>, backtrack: u32) -> Self {
        let splice = Splice { when_sampled: Vec::new(), backtrack, tokens: tokens.into() };
        Self { sample: false, splices: vec![splice], ..Self::default() }
    }

    fn to_wit(&self) -> steering::Branch {
        steering::Branch {
            sample: self.sample,
            allow: self.allow.clone(),
            mask: self.mask.as_ref().map(Mask::id),
            bias: self.bias.clone(),
            temperature: self.temperature,
            splices: self.splices.clone(),
        }
    }
}

/// What a sequence waits for: whatever comes first. One of them must be given.
#[derive(Clone, Debug, Default)]
pub struct Wait {
    /// A variable of the run, and the version that it is to rise above; 0 waits for its first write.
    pub variable: Option<(String, u64)>,
    pub time: Option<Duration>,
}

/// Keeps one controller for each sequence of a generation.
pub struct Steering<C> {
    sequences: BTreeMap<u32, Steered<C>>,
    /// Forks that nobody has heard of yet, by parent.
    unborn: BTreeMap<u32, Vec<u32>>,
    /// The next sequence, as the host numbers them.
    next_id: u32,
}

struct Steered<C> {
    controller: C,
    sequence: Sequence,
    /// What it waits for.
    events: Vec<Event>,
    /// The masks of its last decision, which the host still needs.
    _masks: Vec<Mask>,
}

impl<C: Controller> Steering<C> {
    pub(crate) fn start(config: &str, mut prompt: Vec<u32>) -> Result<(Self, steering::StartAnswer)> {
        let start = C::start(config, &prompt)?;
        if let Some(replaced) = &start.prompt {
            prompt.clone_from(replaced);
        }
        let sequence = Sequence { id: 0, prompt_length: prompt.len(), tokens: prompt };
        let first = Steered { controller: start.controller, sequence, events: Vec::new(), _masks: Vec::new() };
        let answer = steering::StartAnswer { prompt: start.prompt, log_probabilities: start.logprobs };
        Ok((Self { sequences: BTreeMap::from([(0, first)]), unborn: BTreeMap::new(), next_id: 1 }, answer))
    }

    pub(crate) fn step(&mut self, outcomes: Vec<steering::Outcome>) -> Result<Vec<steering::Decision>> {
        outcomes.into_iter().map(|outcome| self.decide(outcome)).collect()
    }

    fn decide(&mut self, outcome: steering::Outcome) -> Result<steering::Decision> {
        let id = outcome.sequence;
        let unborn = self.unborn.remove(&id).unwrap_or_default();
        if outcome.refused.is_some() && outcome.siblings.is_empty() {
            for child in unborn {
                self.sequences.remove(&child);
            }
        }
        let Some(steered) = self.sequences.get_mut(&id) else {
            return Err(Error::new(format!("the host told of a sequence {id} that there is not")));
        };
        let tokens = &mut steered.sequence.tokens;
        tokens.truncate(tokens.len().saturating_sub(outcome.backtrack as usize));
        tokens.extend_from_slice(&outcome.tokens);
        for event in steered.events.drain(..) {
            events::drop_event(event);
        }
        let info = StepInfo {
            backtrack: outcome.backtrack,
            tokens: outcome.tokens,
            sampled: outcome.sampled,
            siblings: outcome.siblings,
            logprobs: outcome.log_probabilities,
            refused: outcome.refused.map(|error| from_host(error, CALL)),
            finish_reason: outcome.finish_reason,
        };
        if info.finish_reason.is_some() {
            steered.controller.end(&steered.sequence, &info);
            self.sequences.remove(&id);
            return Ok(steering::Decision::GoOn);
        }
        let decision = steered.controller.step(&steered.sequence, &info)?;
        self.carry_out(id, decision)
    }

    fn carry_out(&mut self, id: u32, decision: Decision) -> Result<steering::Decision> {
        let branches = match decision {
            Decision::GoOn => return Ok(steering::Decision::GoOn),
            Decision::Wait(wait) => {
                let events = events_of(&wait)?;
                if let Some(steered) = self.sequences.get_mut(&id) {
                    steered.events.clone_from(&events);
                }
                return Ok(steering::Decision::Wait(events));
            }
            Decision::Branch(branch) => vec![branch],
            Decision::Fork(branches) => branches,
            Decision::Stop => Vec::new(),
        };
        if branches.is_empty() {
            self.sequences.remove(&id);
        }
        let children: Vec<u32> = branches.iter().skip(1).filter_map(|_| self.fork(id)).collect();
        if !children.is_empty() {
            self.unborn.insert(id, children);
        }
        if let Some(steered) = self.sequences.get_mut(&id) {
            steered._masks = branches.iter().filter_map(|branch| branch.mask.clone()).collect();
        }
        Ok(steering::Decision::Branches(branches.iter().map(Branch::to_wit).collect()))
    }

    /// Copies a sequence and its controller; the new number.
    fn fork(&mut self, id: u32) -> Option<u32> {
        let parent = self.sequences.get(&id)?;
        let child = self.next_id;
        let sequence = Sequence { id: child, ..parent.sequence.clone() };
        let steered =
            Steered { controller: parent.controller.clone(), sequence, events: Vec::new(), _masks: Vec::new() };
        self.next_id += 1;
        self.sequences.insert(child, steered);
        Some(child)
    }
}

fn events_of(wait: &Wait) -> Result<Vec<Event>> {
    let mut found = Vec::new();
    if let Some((name, above)) = &wait.variable {
        found.push(store::variable_above(name, *above).named(CALL)?);
    }
    if let Some(time) = wait.time {
        found.push(events::timer(nanoseconds(time)));
    }
    if found.is_empty() {
        return Err(Error::new("a Wait must name a variable, or a time"));
    }
    Ok(found)
}
