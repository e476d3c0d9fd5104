//! Stepping: the program has the say before each token. The fake engine's reply is the context's text.

use std::time::Duration;

use futures::future::join_all;
use inferlet::stop_condition::{ends_with_any, max_len};
use inferlet::wit::stepping::{self, Answer};
use inferlet::wit::{contexts, events, types};
use inferlet::{get_auto_model, sleep, Mask, Outcome, Sampler, Splice, Step, Steps, StopCondition};

use crate::common::{filled, greedy, is_ready, never, raw_filled};
use crate::transcript::Transcript;
use crate::{cases, say};

fn say_outcome(t: &mut Transcript, label: &str, outcome: inferlet::Result<Outcome>) {
    match outcome {
        Ok(outcome) => {
            say!(t, label, outcome.tokens, outcome.text, outcome.sampled, outcome.backtrack, outcome.text_backtrack);
            if let Some(reason) = outcome.finish_reason {
                say!(t, "finish", reason);
            }
        }
        Err(_) => {
            t.attempt(label, outcome);
        }
    }
}

fn splice(when_sampled: &[u32], backtrack: u32, tokens: &[u32]) -> Splice {
    Splice { when_sampled: when_sampled.to_vec(), backtrack, tokens: tokens.to_vec() }
}

fn splicing(splices: &[Splice]) -> Step {
    Step { splices: splices.to_vec(), ..Step::default() }
}

fn raw_started(context: &contexts::Context) -> Result<stepping::Steps, types::Error> {
    let options = stepping::Options { log_probabilities: None, constraint: None, mask: None };
    stepping::start(context, &greedy(), &never(), &options)
}

fn plain() -> Answer {
    Answer {
        sample: true,
        allow: None,
        mask: None,
        bias: Vec::new(),
        boosts: Vec::new(),
        temperature: None,
        splices: Vec::new(),
    }
}

async fn start(t: &mut Transcript) {
    let raw = raw_filled("abc");
    let busy = raw_started(&raw).unwrap();
    let mut context = filled("abc");
    {
        let mut steps = context.steps(Sampler::greedy(), max_len(2)).logprobs(2).start().await.unwrap();
        let outcome = steps.next().await.unwrap();
        say_outcome(t, "first", Ok(outcome.clone()));
        let found = outcome.logprobs.unwrap();
        say!(t, "log-probabilities", found.chosen.token, found.chosen.log_probability, found.top.len());
        t.attempt("busy", raw.fill("x"));
        drop(busy);
        let outcome = steps.next().await.unwrap();
        say_outcome(t, "second", Ok(outcome.clone()));
        let usage = outcome.usage.unwrap();
        say!(t, "usage", usage.prompt_tokens, usage.generated_tokens);
        say!(t, "after the end", steps.next().await.unwrap_err().code.as_str());
    }
    say!(t, "context", context.tokens());
    let empty = raw_filled("");
    t.attempt("an empty context", raw_started(&empty));
}

async fn next(t: &mut Transcript) {
    let raw = raw_filled("abcdef"); // the SDK's steps answer and wait, so that other tasks can go on
    raw_started(&raw).unwrap().next(&plain()).unwrap();
    let model = get_auto_model();
    let mut context = filled("abcdef");
    {
        let mut steps = context.steps(Sampler::greedy(), StopCondition::default()).start().await.unwrap();
        say_outcome(t, "plain", steps.next().await);
        let allowed = Step { allow: Some(vec![120, 121]), ..Step::default() };
        say_outcome(t, "allowed", steps.next_with(&allowed).await);
        let in_a_mask = Step { mask: Some(Mask::all(&model).unwrap()), ..Step::default() };
        say_outcome(t, "in a mask", steps.next_with(&in_a_mask).await);
        let biased = Step {
            bias: vec![(65, -1.5), (66, 2.0)],
            boosts: vec![(Mask::of(&model, &[67]).unwrap(), 0.5)],
            temperature: Some(0.5),
            ..Step::default()
        };
        say_outcome(t, "biased", steps.next_with(&biased).await);
        say!(t, "text", steps.text(), steps.tokens());
    }
    say!(t, "context", context.tokens());
}

async fn refused(t: &mut Transcript) {
    let mut context = filled("abcdef");
    let mut steps = context.steps(Sampler::greedy(), StopCondition::default()).start().await.unwrap();
    say_outcome(t, "first", steps.next().await);
    t.attempt("too far back", steps.backtrack(8, &[]).await);
    say_outcome(t, "goes on", steps.next().await);
    say!(t, "text", steps.text());
}

async fn splices(t: &mut Transcript) {
    let mut context = filled("abcdef");
    let tokens = |text: &str| get_auto_model().tokenize(text).unwrap();
    {
        let mut steps = context.steps(Sampler::greedy(), StopCondition::default()).start().await.unwrap();
        let replace = splice(&[97], 1, &[88]);
        say_outcome(t, "replaced", steps.next_with(&splicing(&[splice(&[98], 1, &[89]), replace.clone()])).await);
        say_outcome(t, "kept", steps.next_with(&splicing(&[replace])).await);
        say_outcome(t, "added", steps.next_with(&splicing(&[splice(&[], 0, &[49, 50])])).await);
        say_outcome(t, "and one before it", steps.next_with(&splicing(&[splice(&[], 2, &[90])])).await);
        say!(t, "text", steps.text());
        say_outcome(t, "forced", steps.force("é😀").await);
        say_outcome(t, "forced tokens", steps.force_tokens(&[226, 130]).await);
        say_outcome(t, "the rest of a character", steps.force_tokens(&[172]).await);
        say_outcome(t, "taken back", steps.backtrack(4, &tokens("!")).await);
        let all = steps.tokens().len() + 2;
        say_outcome(t, "into the prompt", steps.backtrack(all, &tokens("zz")).await);
        say_outcome(t, "nothing", steps.backtrack(0, &[]).await);
        say!(t, "text", steps.text());
    }
    say!(t, "context", context.tokens());
}

async fn stop_strings(t: &mut Transcript) {
    let mut context = filled("one two three");
    let mut steps = context.steps(Sampler::greedy(), ends_with_any(["two"])).start().await.unwrap();
    while steps.finish_reason().is_none() {
        steps.next().await.unwrap();
    }
    say!(t, "text", steps.text(), steps.finish_reason(), steps.tokens().len());
}

async fn answer(t: &mut Transcript) {
    let context = raw_filled("abc");
    let steps = raw_started(&context).unwrap();
    t.attempt("first", steps.answer(&plain()));
    t.attempt("before its outcome", steps.answer(&plain()));
    is_ready(steps.ready());
    t.attempt_shown("outcome", steps.outcome().map(|outcome| outcome.sampled));
    let everything = Answer {
        allow: Some(vec![98, 99]),
        bias: vec![(98, 1.5)],
        temperature: Some(0.25),
        splices: vec![splice(&[98], 1, &[120]), splice(&[], 0, &[])],
        ..plain()
    };
    t.attempt("all of it", steps.answer(&everything));
    is_ready(steps.ready());
    let outcome = steps.outcome().unwrap();
    say!(t, "outcome", outcome.backtrack, outcome.tokens, outcome.sampled, outcome.text);
    say!(t, "optional", outcome.log_probabilities.is_none(), outcome.finish.is_none());
}

async fn ready(t: &mut Transcript) {
    let context = raw_filled("abc");
    let steps = raw_started(&context).unwrap();
    let event = steps.ready();
    say!(t, "the same at every call", steps.ready() == event);
    say!(t, "nothing yet", events::poll(&[event], Some(0)));
    steps.answer(&plain()).unwrap();
    say!(t, "ready", is_ready(event));
    steps.outcome().unwrap();
    say!(t, "read", events::poll(&[event], Some(0)));
}

async fn outcome(t: &mut Transcript) {
    let context = raw_filled("abc");
    let steps = raw_started(&context).unwrap();
    t.attempt("before any answer", steps.outcome());
    steps.answer(&plain()).unwrap();
    is_ready(steps.ready());
    t.attempt_shown("once", steps.outcome().map(|outcome| outcome.sampled));
    t.attempt("twice", steps.outcome());
}

async fn fork(t: &mut Transcript) {
    let mut context = filled("abcdef");
    let mut steps = context.steps(Sampler::greedy(), StopCondition::default()).start().await.unwrap();
    steps.next().await.unwrap();
    let mut child = steps.fork(Some(u64::MAX)).unwrap();
    say_outcome(t, "the child", child.force("X").await);
    say_outcome(t, "the parent", steps.next().await);
    say_outcome(t, "the child again", child.next().await);
    let mut grandchild = child.fork(None).unwrap();
    say_outcome(t, "its child", grandchild.next().await);
    say!(t, "texts", steps.text(), child.text(), grandchild.text());
    let mut forked = child.context().fork();
    child.stop();
    say!(t, "the child's context", forked.tokens());
    t.attempt("is free", forked.try_fill("!"));
}

async fn go(mut branch: Steps<'_>) -> String {
    while branch.tokens().len() < 6 {
        branch.next().await.unwrap();
    }
    branch.text().to_owned()
}

async fn many_branches(t: &mut Transcript) {
    let mut context = filled("0123456789");
    let mut steps = context.steps(Sampler::greedy(), StopCondition::default()).start().await.unwrap();
    steps.next().await.unwrap();
    let mut branches = Vec::new();
    for i in 0..20 {
        let mut branch = steps.fork(Some(i)).unwrap();
        branch.force_tokens(&[65 + i as u32]).await.unwrap();
        branches.push(branch);
    }
    say!(t, "texts", join_all(branches.into_iter().map(go)).await);
}

async fn hold(t: &mut Transcript) {
    let context = raw_filled("abc");
    let steps = raw_started(&context).unwrap();
    steps.hold();
    events::poll(&[], Some(1_000_000));
    t.attempt_shown("goes on", steps.next(&plain()).map(|outcome| outcome.sampled));
    steps.hold();
    steps.stop();
    steps.hold();
    say!(t, "held after the end", true);
}

async fn stop(t: &mut Transcript) {
    let context = raw_filled("abc");
    let steps = raw_started(&context).unwrap();
    steps.next(&plain()).unwrap();
    t.attempt("busy", context.fill("x"));
    steps.stop();
    steps.stop();
    t.attempt("over", steps.answer(&plain()));
    t.attempt("free", context.fill("x"));
    say!(t, "length", context.length());
}

async fn late(t: &mut Transcript) {
    let long = Duration::from_millis(300);
    {
        let mut context = filled("abcdef");
        let mut steps = context.steps(Sampler::greedy(), StopCondition::default()).start().await.unwrap();
        steps.next().await.unwrap();
        sleep(long).await;
        t.attempt("too late", steps.next().await);
    }
    let mut context = filled("abcdef");
    let mut steps = context.steps(Sampler::greedy(), StopCondition::default()).start().await.unwrap();
    steps.next().await.unwrap();
    steps.wait(sleep(long)).await;
    say_outcome(t, "held", steps.next().await);
}

cases! {
    "stepping.start" => start,
    "stepping.steps.next" => next,
    "stepping.refused" => refused,
    "stepping.splices" => splices,
    "stepping.stop-strings" => stop_strings,
    "stepping.steps.answer" => answer,
    "stepping.steps.ready" => ready,
    "stepping.steps.outcome" => outcome,
    "stepping.steps.fork" => fork,
    "stepping.many-branches" => many_branches,
    "stepping.steps.hold" => hold,
    "stepping.steps.stop" => stop,
    "stepping.late" => late,
}
