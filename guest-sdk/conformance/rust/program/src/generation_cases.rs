//! Generations, and what the program tells people.

use std::time::Duration;

use inferlet::stop_condition::{ends_with_any, ignore_eos, max_len};
use inferlet::wit::generation::{self, Options, Sampling, Speculation, StopConditions};
use inferlet::wit::log::{log, Level};
use inferlet::wit::contexts;
use inferlet::{Draft, Sampler, StopCondition};

use crate::common::{filled, generated, greedy, is_ready, never, options, raw_filled, raw_started};
use crate::transcript::Transcript;
use crate::{cases, say};

fn say_draft(t: &mut Transcript, label: &str, draft: &Draft) {
    say!(t, label, draft.text, draft.finish_reason, draft.stop_string);
    say!(t, "tokens", draft.tokens);
}

async fn generate(t: &mut Transcript) {
    let mut context = filled("Hello é");
    let draft = generated(&mut context).await.unwrap();
    say_draft(t, "draft", &draft);
    let usage = &draft.usage;
    say!(t, "usage", usage.prompt_tokens, usage.cached_tokens, usage.generated_tokens, usage.forced_tokens);
    say!(t, "guesses", usage.draft_tokens, usage.accepted_tokens);
    say!(t, "pages", usage.pages, usage.shared_pages);
    say!(t, "times", 0 < usage.first_token_ns && usage.first_token_ns <= usage.total_ns);
    say!(t, "context", context.tokens());
    let again = context.generate(Sampler::greedy(), max_len(3)).draft().await.unwrap();
    say_draft(t, "goes on", &again);
}

async fn ready(t: &mut Transcript) {
    let context = raw_filled("Hello");
    let running = raw_started(&context, false);
    let event = running.ready();
    say!(t, "the same at every call", running.ready() == event);
    say!(t, "ready", is_ready(event));
    say!(t, "text", running.read().unwrap().text);
}

async fn read(t: &mut Transcript) {
    let context = raw_filled("Hello");
    let running = raw_started(&context, false);
    let early = running.read().unwrap(); // what there is by now, which may be nothing
    say!(t, "not the end", early.finish.is_none(), early.log_probabilities.len());
    is_ready(running.ready());
    let chunk = running.read().unwrap();
    say!(t, "all", early.text + &chunk.text, [early.tokens, chunk.tokens].concat());
    let finish = chunk.finish.unwrap();
    say!(t, "finish", finish.reason, finish.stop_string, finish.usage.generated_tokens);
    t.attempt("after the end", running.read());
}

async fn next(t: &mut Transcript) {
    let context = raw_filled("Hello");
    let running = raw_started(&context, true);
    let mut text = String::new();
    loop {
        let chunk = running.next().unwrap();
        text += &chunk.text;
        if chunk.finish.is_some() {
            break;
        }
    }
    say!(t, "text", text);
    t.attempt("after the end", running.next());
}

async fn cancel(t: &mut Transcript) {
    let mut context = filled("endless");
    let draft = {
        let running = context.generate(Sampler::greedy(), StopCondition::default()).chunk_interval(Duration::ZERO);
        let mut chunks = running.chunks().await.unwrap();
        let chunk = chunks.next().await.unwrap().unwrap();
        say!(t, "began", chunk.text[..1]);
        chunks.cancel();
        chunks.cancel();
        while chunks.next().await.is_some() {}
        chunks.draft().unwrap().clone()
    };
    say!(t, "finish", draft.finish_reason);
    say!(t, "less than all", draft.tokens.len() < 1500);
    say!(t, "the context has them", context.tokens()[7..] == draft.tokens);
}

async fn stop(t: &mut Transcript) {
    let context = filled("one two three");
    for (label, stop) in [
        ("length", max_len(4)),
        ("string", ends_with_any(["e t", "xyz"])),
        ("token", ends_with_any([119])),
        ("first of several", max_len(6).and(ends_with_any(["wo", "three"]))),
        ("ends with any", ends_with_any(["ne"]).and(ends_with_any([116]))),
        ("beyond eos", ignore_eos().and(max_len(16))),
    ] {
        let draft = context.fork().generate(Sampler::greedy(), stop).draft().await.unwrap();
        say_draft(t, label, &draft);
    }
    let unknown = ends_with_any([u32::MAX]).and(max_len(1));
    t.attempt("no tokens at all", context.fork().generate(Sampler::greedy(), unknown).draft().await);
}

fn attempt_sampling(t: &mut Transcript, context: &contexts::Context, label: &str, sampling: Sampling) {
    let stop = StopConditions { max_tokens: Some(1), ..never() };
    if let Some(running) = t.attempt(label, generation::generate(context, &sampling, &stop, &options(false))) {
        say!(t, "generates", running.next().unwrap().text);
    }
}

async fn sampling_limits(t: &mut Transcript) {
    let context = raw_filled("Hi");
    let sampled = Sampling { temperature: 1.0, ..greedy() };
    for (label, sampling) in [
        (
            "largest seed",
            Sampling {
                temperature: 0.5,
                top_k: 40,
                top_p: 0.9,
                min_p: 0.05,
                repetition_penalty: 1.1,
                presence_penalty: 0.1,
                frequency_penalty: 0.1,
                logit_bias: vec![(65, 1.5), (0, -100.0)],
                seed: Some(u64::MAX),
            },
        ),
        ("negative temperature", Sampling { temperature: -1.0, ..greedy() }),
        ("temperature is no number", Sampling { temperature: f32::NAN, ..greedy() }),
        ("endless temperature", Sampling { temperature: f32::INFINITY, ..greedy() }),
        ("top-p of zero", Sampling { top_p: 0.0, ..sampled.clone() }),
        ("top-p above one", Sampling { top_p: 1.5, ..sampled.clone() }),
        ("min-p above one", Sampling { min_p: 2.0, ..sampled.clone() }),
        ("repetition penalty of zero", Sampling { repetition_penalty: 0.0, ..sampled }),
        ("bias of an unknown token", Sampling { logit_bias: vec![(258, 1.0)], ..greedy() }),
        ("bias is no number", Sampling { logit_bias: vec![(65, f32::NAN)], ..greedy() }),
        ("largest top-k", Sampling { top_k: u32::MAX, seed: Some(0), ..greedy() }),
    ] {
        attempt_sampling(t, &context, label, sampling);
    }
}

fn guesses(max_draft: u32, ngram: u32, expected: &[u32]) -> Options {
    Options { speculation: Some(Speculation { max_draft, ngram, expected: expected.to_vec() }), ..options(false) }
}

async fn option_limits(t: &mut Transcript) {
    let context = raw_filled("Hi");
    let one = StopConditions { max_tokens: Some(1), ..never() };
    let everything = Options {
        streaming: true,
        chunk_interval_ns: u64::MAX,
        log_probabilities: Some(20),
        ..guesses(32, 8, &[65])
    };
    for (label, stop, options) in [
        ("no tokens", StopConditions { max_tokens: Some(0), ..never() }, options(false)),
        ("an unknown stop token", StopConditions { tokens: vec![258], ..one.clone() }, options(false)),
        ("an empty stop string", StopConditions { strings: vec![String::new()], ..one.clone() }, options(false)),
        ("21 log-probabilities", one.clone(), Options { log_probabilities: Some(21), ..options(false) }),
        ("guesses of nothing", one.clone(), guesses(0, 3, &[])),
        ("33 guesses", one.clone(), guesses(33, 3, &[])),
        ("9-grams", one.clone(), guesses(8, 9, &[])),
        ("an unknown expected token", one.clone(), guesses(8, 3, &[258])),
        (
            "all of it",
            StopConditions { tokens: vec![65], strings: vec!["x".to_owned()], ignore_eos: true, ..one },
            everything,
        ),
    ] {
        if let Some(running) = t.attempt(label, generation::generate(&context, &greedy(), &stop, &options)) {
            t.attempt_shown("and then", running.next().map(|chunk| chunk.text));
        }
    }
}

async fn log_probabilities(t: &mut Transcript) {
    let plainly = |top: Option<u32>| async move {
        let mut context = filled("Hi");
        let running = context.generate(Sampler::greedy(), StopCondition::default());
        match top {
            Some(top) => running.logprobs(top).draft().await.unwrap().logprobs,
            None => running.draft().await.unwrap().logprobs,
        }
    };
    for each in plainly(Some(3)).await {
        say!(t, "chosen", each.chosen.token, each.chosen.log_probability);
        say!(t, "top", each.top.len(), each.top[0].token, each.top[0].log_probability);
    }
    let lengths: Vec<usize> = plainly(Some(0)).await.iter().map(|each| each.top.len()).collect();
    say!(t, "none but the chosen", lengths);
    say!(t, "not asked for", plainly(None).await.len());
}

async fn streaming(t: &mut Transcript) {
    let mut context = filled("Grüße 😀, 你好");
    let running = context.generate(Sampler::greedy(), StopCondition::default()).chunk_interval(Duration::ZERO);
    let mut chunks = running.chunks().await.unwrap();
    let (mut text, mut tokens, mut characters) = (String::new(), Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.unwrap();
        characters += chunk.text.chars().count();
        text += &chunk.text;
        tokens.extend(chunk.tokens);
    }
    say!(t, "text", text);
    say!(t, "tokens", tokens);
    say!(t, "characters", characters);
    let draft = chunks.draft().unwrap();
    say!(t, "the draft has the same", draft.text == text, draft.tokens == tokens);
    say!(t, "finish", draft.finish_reason);
}

async fn failed(t: &mut Transcript) {
    let mut context = filled("<|im_start|>user\nfail<|im_end|>");
    t.attempt("the engine's error", generated(&mut context).await);
    t.attempt("the context is free", context.try_fill("x"));
    t.attempt("an empty context", generated(&mut filled("")).await);
}

async fn context_overflow(t: &mut Transcript) {
    let mut context = filled(&"x".repeat(2040));
    let draft = generated(&mut context).await.unwrap();
    say!(t, "up to the context length", draft.tokens.len(), draft.finish_reason);
    t.attempt("no room", generated(&mut context).await);
    say!(t, "room", context.room());
}

async fn sampler_values(t: &mut Transcript) {
    let context = filled("Hi");
    for sampler in [
        Sampler::greedy(),
        Sampler::temperature(0.7),
        Sampler::top_p(0.8, 0.95),
        Sampler::top_k(40).with_temperature(0.5),
        Sampler::min_p(0.1).with_temperature(1.5),
        Sampler::top_p(1.0, 0.5)
            .with_seed(u64::MAX)
            .with_repetition_penalty(1.2)
            .with_presence_penalty(-0.5)
            .with_bias(65, -2.0),
    ] {
        let draft = context.fork().generate(sampler, StopCondition::default()).draft().await.unwrap();
        say!(t, "text", draft.text);
    }
}

async fn print_text(_: &mut Transcript) {
    print!("one");
    println!(" two é 😀");
    println!();
    print!("three\nfour");
}

async fn log_lines(_: &mut Transcript) {
    for (level, name) in [
        (Level::Trace, "trace"),
        (Level::Debug, "debug"),
        (Level::Info, "info"),
        (Level::Warn, "warn"),
        (Level::Error, "error"),
    ] {
        inferlet::log::log(level, format!("a line of level \"{name}\" \\ é"));
    }
    log(Level::Info, "");
}

cases! {
    "generation.generate" => generate,
    "generation.generation.ready" => ready,
    "generation.generation.read" => read,
    "generation.generation.next" => next,
    "generation.generation.cancel" => cancel,
    "generation.stop" => stop,
    "generation.sampling-limits" => sampling_limits,
    "generation.option-limits" => option_limits,
    "generation.log-probabilities" => log_probabilities,
    "generation.streaming" => streaming,
    "generation.failed" => failed,
    "generation.context-overflow" => context_overflow,
    "generation.sampler-values" => sampler_values,
    "log.print" => print_text,
    "log.log" => log_lines,
}
