//! Forward passes: what would the model say, if?

use std::marker::PhantomData;

use crate::context::{to_u32, Context};
use crate::error::{Error, ErrorCode, Named, Result};
use crate::executor::{forget, ready};
use crate::sampler::Sampler;
use crate::wit::forward;

pub use crate::wit::generation::TokenLogProbability;

/// What is wanted of a pass, for `Context.forward`.
#[derive(Clone, Debug, Default)]
pub struct PassRequest {
    parents: Option<Vec<u32>>,
    positions: Option<Vec<u32>>,
    logprobs: bool,
    asks: Vec<Ask>,
}

impl PassRequest {
    /// Nothing but to compute it; each token follows the one before.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which row each token follows: row 0 is the context's last token, row n the n-th of the pass. A token sees what it
    /// follows and no other branch. A tree has at most 256 tokens.
    pub fn parents(mut self, rows: impl Into<Vec<u32>>) -> Self {
        self.parents = Some(rows.into());
        self
    }

    /// Where each token stands: after the one that it follows, but not necessarily right after.
    pub fn positions(mut self, positions: impl Into<Vec<u32>>) -> Self {
        self.positions = Some(positions.into());
        self
    }

    /// Reports the log-probability of each token after what it follows.
    pub fn logprobs(mut self) -> Self {
        self.logprobs = true;
        self
    }

    /// Asks what comes after a row.
    pub fn ask(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }
}

/// What is wanted of one row: what comes after that token?
#[derive(Clone, Debug, Default)]
pub struct Ask {
    row: u32,
    sampler: Option<Sampler>,
    sample_index: u32,
    top: u32,
    given: Vec<u32>,
    entropy: bool,
    logits: bool,
}

impl Ask {
    /// Of row 0, the context's last token, or row n, the n-th of the pass.
    pub fn row(row: usize) -> Self {
        Self { row: to_u32(row), ..Self::default() }
    }

    /// A sampled token. `index` is which number of the seed's stream it is sampled by: a generation's first token has 0.
    pub fn sample(mut self, sampler: Sampler, index: u32) -> Self {
        self.sampler = Some(sampler);
        self.sample_index = index;
        self
    }

    /// So many most likely tokens.
    pub fn top(mut self, count: u32) -> Self {
        self.top = count;
        self
    }

    /// The log-probabilities of these tokens.
    pub fn given(mut self, tokens: impl Into<Vec<u32>>) -> Self {
        self.given = tokens.into();
        self
    }

    /// The entropy of the distribution.
    pub fn entropy(mut self) -> Self {
        self.entropy = true;
        self
    }

    /// All logits, as the model gives them.
    pub fn logits(mut self) -> Self {
        self.logits = true;
        self
    }

    fn to_wit(&self) -> forward::Request {
        forward::Request {
            row: self.row,
            sampling: self.sampler.as_ref().map(|sampler| sampler.to_wit().clone()),
            sample_index: self.sample_index,
            top: self.top,
            given: self.given.clone(),
            entropy: self.entropy,
            logits: self.logits,
        }
    }
}

/// The answer to one `Ask`. Log-probabilities and entropy are in nats.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The token sampled.
    pub sampled: Option<TokenLogProbability>,
    /// The most likely tokens, most likely first.
    pub top: Vec<TokenLogProbability>,
    /// One for each token given.
    pub given: Vec<f32>,
    pub entropy: Option<f32>,
    /// By token.
    pub logits: Vec<f32>,
}

/// A pass that was computed. Its context is busy until the pass is committed or dropped, which forgets it.
pub struct Pass<'context> {
    handle: forward::Pass,
    /// One for each token, if asked for.
    pub logprobs: Vec<f32>,
    /// One for each `Ask`, in their order.
    pub rows: Vec<Row>,
    context: PhantomData<&'context mut Context>,
}

impl Pass<'_> {
    pub(crate) async fn compute<'context>(
        context: &'context mut Context,
        tokens: &[u32],
        request: PassRequest,
        call: &'static str,
    ) -> Result<Pass<'context>> {
        let options = forward::Options {
            parents: request.parents,
            positions: request.positions,
            log_probabilities: request.logprobs,
            requests: request.asks.iter().map(Ask::to_wit).collect(),
        };
        let handle = forward::forward(context.handle(), tokens, &options).named(call)?;
        let event = handle.ready();
        ready(event).await;
        let findings = handle.read().named(call)?;
        forget(event);
        let size = context.model().info().vocabulary_size as usize;
        let rows = findings.rows.into_iter().map(|row| to_row(row, size)).collect();
        Ok(Pass { handle, logprobs: findings.log_probabilities, rows, context: PhantomData })
    }

    /// Appends the tokens of some rows to the context, each of which follows the one before. What of them is computed is
    /// not computed again; the rest of the pass is forgotten.
    pub fn commit(self, path: &[u32]) -> Result<()> {
        self.handle.commit(path).named("Pass.commit")
    }
}

fn to_row(row: forward::Row, vocabulary_size: usize) -> Row {
    let halves = row.logits.iter().flat_map(|pair| [*pair as u32, (*pair >> 32) as u32]);
    let logits = halves.map(f32::from_bits).take(vocabulary_size).collect();
    Row { sampled: row.sampled, top: row.top, given: row.given, entropy: row.entropy, logits }
}

/// Tokens of a draft that `verify` takes: a pass samples 64 times at most.
const MOST_VERIFIED: usize = 63;
/// Tokens of a pass that is a tree.
const MOST_BRANCHES: usize = 256;

impl Context {
    /// The log-probability of each text if it followed the context: the sum over its tokens, in nats. Keeps nothing.
    ///
    /// What texts have in common is computed once. Of texts with different numbers of tokens the longer ones are less likely.
    pub async fn score<T: AsRef<str>>(&mut self, options: &[T]) -> Result<Vec<f32>> {
        let call = "Context.score";
        let mut texts = Vec::new();
        for option in options {
            texts.push(self.tokens_of(option.as_ref(), call)?);
        }
        let mut totals = Vec::new();
        while totals.len() < texts.len() {
            let rest = &texts[totals.len()..];
            let mut branches = Branches::default();
            let fitting = rest.iter().take_while(|text| branches.add_if_fits(text)).count();
            if fitting == 0 {
                totals.push(self.line(&rest[0], call).await?.iter().sum()); // a text that is a pass by itself
            } else {
                totals.extend(branches.totals(self, &rest[..fitting], call).await?);
            }
        }
        Ok(totals)
    }

    /// The tokens of a text, each with its log-probability if the text followed the context. Keeps nothing.
    pub async fn logprobs(&mut self, text: &str) -> Result<Vec<TokenLogProbability>> {
        let call = "Context.logprobs";
        let tokens = self.tokens_of(text, call)?;
        let logprobs = self.line(&tokens, call).await?;
        let pairs = tokens.into_iter().zip(logprobs);
        Ok(pairs.map(|(token, log_probability)| TokenLogProbability { token, log_probability }).collect())
    }

    /// What may come next: so many most likely tokens, and the entropy.
    pub async fn next_distribution(&mut self, top: u32) -> Result<Row> {
        let request = PassRequest::new().ask(Ask::row(0).top(top).entropy());
        let mut pass = Pass::compute(self, &[], request, "Context.next_distribution").await?;
        Ok(pass.rows.remove(0))
    }

    /// Appends what the sampler chooses as long as that is the draft's next token, and one token more, in one pass; what was
    /// appended. `sample_index` is the number of tokens generated so far, for samplers with a seed.
    pub async fn verify(&mut self, draft: &[u32], sampler: &Sampler, sample_index: u32) -> Result<Vec<u32>> {
        let call = "Context.verify";
        if draft.len() > MOST_VERIFIED {
            let message = format!("the number of tokens in draft must be from 0 to {MOST_VERIFIED}, not {}", draft.len());
            return Err(Error::of(ErrorCode::InvalidArgument, call, message));
        }
        let mut request = PassRequest::new();
        for row in 0..=draft.len() {
            request = request.ask(Ask::row(row).sample(sampler.clone(), sample_index.saturating_add(to_u32(row))));
        }
        let pass = Pass::compute(self, draft, request, call).await?;
        let mut tokens = Vec::new();
        for (row, answer) in pass.rows.iter().enumerate() {
            let Some(sampled) = &answer.sampled else { break };
            tokens.push(sampled.token);
            if draft.get(row) != Some(&sampled.token) {
                break;
            }
        }
        let path: Vec<u32> = (1..tokens.len() as u32).collect();
        pass.handle.commit(&path).named(call)?;
        drop(pass);
        if let Some(last) = tokens.last() {
            self.handle().fill_tokens(&[*last]).named(call)?;
        }
        Ok(tokens)
    }

    fn tokens_of(&self, text: &str, call: &'static str) -> Result<Vec<u32>> {
        let tokens = self.model().tokenize_for(text, call)?;
        if tokens.is_empty() {
            return Err(Error::of(ErrorCode::InvalidArgument, call, "a text is empty"));
        }
        Ok(tokens)
    }

    /// The log-probability of each token, if they all follow the context.
    async fn line(&mut self, tokens: &[u32], call: &'static str) -> Result<Vec<f32>> {
        let (last, before) = tokens.split_last().expect("no text is empty");
        let request = PassRequest::new().logprobs().ask(Ask::row(before.len()).given([*last]));
        let mut pass = Pass::compute(self, before, request, call).await?;
        let mut logprobs = std::mem::take(&mut pass.logprobs);
        logprobs.extend_from_slice(&pass.rows[0].given);
        Ok(logprobs)
    }
}

/// Texts as a tree that shares their beginnings. The last token of a text is no node of it: its probability is known before
/// it is computed.
struct Branches {
    tokens: Vec<u32>,
    parents: Vec<u32>,
    /// By row: the tokens whose probability after it is wanted, and the row of each that is a node.
    next: Vec<Vec<(u32, Option<u32>)>>,
}

impl Default for Branches {
    fn default() -> Self {
        Self { tokens: Vec::new(), parents: Vec::new(), next: vec![Vec::new()] }
    }
}

impl Branches {
    fn add_if_fits(&mut self, text: &[u32]) -> bool {
        let mut row = 0;
        let known = text[..text.len() - 1].iter().take_while(|token| match self.child(row, **token) {
            Some(child) => {
                row = child;
                true
            }
            None => false,
        });
        if self.tokens.len() + text.len() - 1 - known.count() > MOST_BRANCHES {
            return false;
        }
        self.add(text);
        true
    }

    fn add(&mut self, text: &[u32]) {
        let mut row = 0;
        for (index, token) in text.iter().enumerate() {
            let is_node = index + 1 < text.len();
            let wanted = &mut self.next[row as usize];
            let place = wanted.iter().position(|(each, _)| each == token).unwrap_or_else(|| {
                wanted.push((*token, None));
                wanted.len() - 1
            });
            if !is_node {
                return;
            }
            row = match wanted[place].1 {
                Some(child) => child,
                None => {
                    self.tokens.push(*token);
                    self.parents.push(row);
                    let child = to_u32(self.tokens.len());
                    self.next[row as usize][place].1 = Some(child);
                    self.next.push(Vec::new());
                    child
                }
            };
        }
    }

    fn child(&self, row: u32, token: u32) -> Option<u32> {
        self.next[row as usize].iter().find(|(each, _)| *each == token)?.1
    }

    /// Computes all of it; the log-probability of each text that was added.
    async fn totals(self, context: &mut Context, texts: &[Vec<u32>], call: &'static str) -> Result<Vec<f32>> {
        let mut request = PassRequest::new().parents(self.parents.clone());
        for (row, wanted) in self.next.iter().enumerate() {
            request = request.ask(Ask::row(row).given(wanted.iter().map(|(token, _)| *token).collect::<Vec<_>>()));
        }
        let pass = Pass::compute(context, &self.tokens, request, call).await?;
        let total = |text: &Vec<u32>| {
            let mut row = 0;
            let logprob = |token: &u32| {
                let wanted = &self.next[row as usize];
                let place = wanted.iter().position(|(each, _)| each == token).expect("it was added");
                let logprob = pass.rows[row as usize].given[place];
                row = wanted[place].1.unwrap_or(0);
                logprob
            };
            text.iter().map(logprob).sum()
        };
        Ok(texts.iter().map(total).collect())
    }
}
