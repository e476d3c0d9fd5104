//! What many cases begin with.

use inferlet::wit::{contexts, events, generation, models};
use inferlet::{get_auto_model, Context, Draft, Sampler, StopCondition};

pub const HOUR_NS: u64 = 3_600_000_000_000;

/// A context with a text.
pub fn filled(text: &str) -> Context {
    let mut context = get_auto_model().create_context();
    context.fill(text);
    context
}

/// Generates greedily, to the end.
pub async fn generated(context: &mut Context) -> inferlet::Result<Draft> {
    context.generate(Sampler::greedy(), StopCondition::default()).draft().await
}

/// The contract's own model.
pub fn raw_model() -> models::Model {
    models::Model::open(None).unwrap()
}

/// The contract's own context.
pub fn raw_filled(text: &str) -> contexts::Context {
    let context = contexts::Context::create(&raw_model(), None).unwrap();
    context.fill(text).unwrap();
    context
}

pub fn greedy() -> generation::Sampling {
    generation::Sampling {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        logit_bias: Vec::new(),
        seed: None,
    }
}

pub fn never() -> generation::StopConditions {
    generation::StopConditions { max_tokens: None, tokens: Vec::new(), strings: Vec::new(), ignore_eos: false }
}

pub fn options(streaming: bool) -> generation::Options {
    generation::Options {
        streaming,
        chunk_interval_ns: 0,
        log_probabilities: None,
        constraint: None,
        speculation: None,
        mask: None,
    }
}

/// The contract's own generation.
pub fn raw_started(context: &contexts::Context, streaming: bool) -> generation::Generation {
    generation::generate(context, &greedy(), &never(), &options(streaming)).unwrap()
}

/// Whether poll says that just this event is ready.
pub fn is_ready(event: u32) -> bool {
    events::poll(&[event], None) == [event]
}
