//! Generations that a controller steers, which the host knows as `steered`: the package `controller`.

use std::time::Duration;

use futures::join;
use inferlet::stop_condition::max_len;
use inferlet::wit::{contexts, controllers, events};
use inferlet::{sleep, variables, Draft, Result, Sampler, StopCondition};

use crate::common::{filled, greedy, is_ready, never, options, raw_filled};
use crate::transcript::Transcript;
use crate::{cases, say};

fn config(what: &str) -> String {
    format!("{{\"do\": \"{what}\"}}")
}

async fn steer(text: &str, what: &str) -> Result<Draft> {
    let mut context = filled(text);
    let running = context.generate(Sampler::greedy(), StopCondition::default());
    running.controller("steered", &config(what)).draft().await
}

fn say_draft(t: &mut Transcript, draft: &Draft) {
    for each in &draft.sequences {
        say!(t, "sequence", each.text, each.tokens, each.finish_reason);
    }
}

async fn say_steered(t: &mut Transcript, what: &str) {
    let draft = steer("abcdef", what).await.unwrap();
    say_draft(t, &draft);
}

async fn control(t: &mut Transcript) {
    say_steered(t, "stop").await;
    let mut context = filled("abcdef");
    let running = context.generate(Sampler::greedy(), max_len(4)).controller("steered", &config("go"));
    say_draft(t, &running.draft().await.unwrap());
    let mut context = filled("x");
    let running = context.generate(Sampler::greedy(), StopCondition::default()).controller("nobody", "null");
    t.attempt("unknown", running.draft().await);
    t.attempt("an empty context", steer("", "go").await);
}

async fn allow(t: &mut Transcript) {
    say_steered(t, "allow").await;
}

async fn force(t: &mut Transcript) {
    say_steered(t, "force").await;
}

async fn splice(t: &mut Transcript) {
    say_steered(t, "splice").await;
}

async fn fork(t: &mut Transcript) {
    let mut context = filled("abcdef");
    let running = context.generate(Sampler::greedy(), StopCondition::default()).logprobs(1);
    let draft = running.controller("steered", &config("fork")).draft().await.unwrap();
    say_draft(t, &draft);
    let numbers: Vec<Vec<f32>> = draft
        .sequences
        .iter()
        .map(|each| each.logprobs.iter().map(|position| position.chosen.log_probability).collect())
        .collect();
    say!(t, "log-probabilities", numbers);
}

async fn prompt(t: &mut Transcript) {
    let mut context = filled("abcdef");
    let running = context.generate(Sampler::greedy(), max_len(4)).controller("steered", &config("prompt"));
    let draft = running.draft().await.unwrap();
    say_draft(t, &draft);
    say!(t, "context", context.tokens());
}

async fn wait(t: &mut Transcript) {
    let write = async {
        sleep(Duration::from_millis(10)).await;
        variables::set("go", "x").unwrap();
    };
    let (draft, ()) = join!(steer("abcdef", "wait"), write);
    say_draft(t, &draft.unwrap());
}

async fn deadlock(t: &mut Transcript) {
    say_steered(t, "wait-for-ever").await;
}

async fn refused(t: &mut Transcript) {
    say_steered(t, "refused").await;
}

async fn failed(t: &mut Transcript) {
    for what in ["fail-at-start", "fail-later"] {
        let error = steer("abcdef", what).await.unwrap_err();
        say!(t, what, error.code.as_str(), error.message.contains("the reason is seven é"));
    }
}

async fn cancelled(t: &mut Transcript) {
    let mut context = filled("endless");
    let draft = {
        let running = context.generate(Sampler::greedy(), StopCondition::default()).chunk_interval(Duration::ZERO);
        let mut chunks = running.controller("steered", &config("go")).chunks().await.unwrap();
        chunks.next().await;
        chunks.cancel();
        while chunks.next().await.is_some() {}
        chunks.draft().unwrap().clone()
    };
    say!(t, "finish", draft.finish_reason);
    t.attempt("the context is free", context.truncate(7));
}

fn raw_started(context: &contexts::Context, what: &str, streaming: bool) -> controllers::Controlled {
    controllers::control(context, "steered", &config(what), &greedy(), &never(), &options(streaming)).unwrap()
}

async fn ready(t: &mut Transcript) {
    let context = raw_filled("abcdef");
    let running = raw_started(&context, "stop", false);
    let event = running.ready();
    say!(t, "the same at every call", running.ready() == event);
    say!(t, "ready", is_ready(event));
}

async fn read(t: &mut Transcript) {
    let context = raw_filled("abcdef");
    let running = raw_started(&context, "stop", false);
    is_ready(running.ready());
    let found = running.read().unwrap();
    say!(t, "ended", found.ended, found.chunks.len());
    let chunk = &found.chunks[0];
    say!(t, "chunk", chunk.sequence, chunk.text_backtrack, chunk.text, chunk.token_backtrack, chunk.tokens);
    let finish = chunk.finish.as_ref().unwrap();
    say!(t, "finish", finish.reason, finish.stop_string);
    t.attempt("after the end", running.read());
}

async fn cancel(t: &mut Transcript) {
    let context = raw_filled("endless");
    let running = raw_started(&context, "go", true);
    let event = running.ready();
    is_ready(event);
    running.cancel();
    let mut finish = None;
    while finish.is_none() {
        events::poll(&[event], None);
        finish = running.read().unwrap().chunks.into_iter().find_map(|chunk| chunk.finish);
    }
    say!(t, "finish", finish.unwrap().reason);
    running.cancel();
    t.attempt("the context is free", context.truncate(7));
}

cases! {
    "controllers.control" => control,
    "controllers.allow" => allow,
    "controllers.force" => force,
    "controllers.splice" => splice,
    "controllers.fork" => fork,
    "controllers.prompt" => prompt,
    "controllers.wait" => wait,
    "controllers.deadlock" => deadlock,
    "controllers.refused" => refused,
    "controllers.failed" => failed,
    "controllers.cancelled" => cancelled,
    "controllers.controlled.ready" => ready,
    "controllers.controlled.read" => read,
    "controllers.controlled.cancel" => cancel,
}
