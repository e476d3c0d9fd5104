//! Forward passes. The fake engine thinks that token n + 1 follows token n, with a probability of a half.

use inferlet::wit::forward::{self, Options, Request};
use inferlet::wit::{contexts, types};
use inferlet::{Ask, Context, Pass, PassRequest, Result, Sampler};

use crate::common::{filled, is_ready, raw_filled};
use crate::transcript::Transcript;
use crate::{cases, say};

fn say_pass(t: &mut Transcript, found: &Pass) {
    say!(t, "log-probabilities", found.logprobs);
    for row in &found.rows {
        match &row.sampled {
            Some(sampled) => say!(t, "sampled", sampled.token, sampled.log_probability),
            None => say!(t, "sampled", None::<u32>),
        }
        let tokens: Vec<u32> = row.top.iter().map(|each| each.token).collect();
        let numbers: Vec<f32> = row.top.iter().map(|each| each.log_probability).collect();
        say!(t, "top", tokens, numbers);
        say!(t, "given", row.given);
        say!(t, "entropy", row.entropy);
        say!(t, "logits", row.logits.len(), row.logits[..row.logits.len().min(2)]);
    }
}

async fn forward(t: &mut Transcript) {
    let mut context = filled("A");
    let everything = Ask::row(0).sample(Sampler::greedy(), u32::MAX).top(2).given([66, 0, 257]).entropy().logits();
    let request = PassRequest::new().logprobs().ask(Ask::row(0)).ask(everything).ask(Ask::row(2).top(1));
    say_pass(t, &context.forward(&[66, 70], request).await.unwrap());
    {
        let found = context.forward(&[67], PassRequest::new()).await.unwrap();
        say!(t, "nothing asked", found.logprobs.len(), found.rows.len());
    }
    say!(t, "context", context.tokens());
}

async fn attempt(t: &mut Transcript, label: &str, context: &mut Context, tokens: &[u32], request: PassRequest) {
    let result: Result<()> = context.forward(tokens, request).await.map(|_| ());
    t.attempt(label, result);
}

fn asking(number: usize, ask: &Ask) -> PassRequest {
    (0..number).fold(PassRequest::new(), |request, _| request.ask(ask.clone()))
}

async fn limits(t: &mut Transcript) {
    let context = &mut filled("A");
    let new = PassRequest::new;
    attempt(t, "out of range", context, &[u32::MAX], new()).await;
    attempt(t, "a row that is not there", context, &[66], new().ask(Ask::row(2))).await;
    attempt(t, "a parent that comes later", context, &[66, 67], new().parents([2, 0])).await;
    attempt(t, "too few parents", context, &[66, 67], new().parents([0])).await;
    attempt(t, "too large a tree", context, &[66; 257], new().parents([0; 257])).await;
    attempt(t, "too many asked", context, &[66], asking(513, &Ask::row(0))).await;
    attempt(t, "too many samples", context, &[66], asking(65, &Ask::row(0).sample(Sampler::greedy(), 0))).await;
    attempt(t, "too many rows of logits", context, &[66], asking(9, &Ask::row(0).logits())).await;
    attempt(t, "too many tokens", context, &[66; 2048], new()).await;
    attempt(t, "a position that is taken", context, &[66], new().positions([0])).await;
    attempt(t, "an empty context", &mut filled(""), &[66], new()).await;
    say!(t, "the context is free", context.len());
}

async fn tree(t: &mut Transcript) {
    let mut context = filled("A");
    let raw = raw_filled("A");
    let request = (1..=5).fold(PassRequest::new().parents([0, 0, 1, 2, 2]).logprobs(), |request, row| {
        request.ask(Ask::row(row).top(1))
    });
    {
        let found = context.forward(&[66, 80, 67, 81, 90], request).await.unwrap();
        say!(t, "log-probabilities", found.logprobs);
        let likely: Vec<u32> = found.rows.iter().map(|row| row.top[0].token).collect();
        say!(t, "most likely", likely);
    }
    // A commit takes the SDK's pass, also one that fails: two commits of one pass are by the bindings.
    let options = Options { parents: Some(vec![0, 0, 1, 2, 2]), ..plain() };
    let pass = forward::forward(&raw, &[66, 80, 67, 81, 90], &options).unwrap();
    is_ready(pass.ready());
    t.attempt("not a path", pass.commit(&[1, 4]));
    t.attempt("a path", pass.commit(&[2, 4]));
    say!(t, "context", raw.tokens());
    context.forward(&[80, 81], PassRequest::new()).await.unwrap().commit(&[1, 2]).unwrap();
    let found = context.forward(&[90, 91], PassRequest::new().positions([10, 20])).await.unwrap();
    say!(t, "with gaps", found.rows.len());
}

fn plain() -> Options {
    Options { parents: None, positions: None, log_probabilities: false, requests: Vec::<Request>::new() }
}

fn started(context: &contexts::Context, tokens: &[u32]) -> std::result::Result<forward::Pass, types::Error> {
    forward::forward(context, tokens, &Options { log_probabilities: true, ..plain() })
}

async fn ready(t: &mut Transcript) {
    let context = raw_filled("A");
    let pass = started(&context, &[66]).unwrap();
    let event = pass.ready();
    say!(t, "the same at every call", pass.ready() == event);
    say!(t, "ready", is_ready(event));
}

async fn read(t: &mut Transcript) {
    let context = raw_filled("A");
    let pass = started(&context, &[66]).unwrap();
    t.attempt("too early", pass.read());
    is_ready(pass.ready());
    let found = pass.read().unwrap();
    say!(t, "found", found.log_probabilities, found.rows.len());
    t.attempt("twice", pass.read());
}

async fn commit(t: &mut Transcript) {
    let context = raw_filled("A");
    {
        let pass = started(&context, &[66, 67, 68]).unwrap();
        is_ready(pass.ready());
        t.attempt("not from the beginning", pass.commit(&[2]));
        t.attempt("a row that is not there", pass.commit(&[4]));
        t.attempt("two of them", pass.commit(&[1, 2]));
    }
    say!(t, "context", context.tokens());
    {
        let pass = started(&context, &[69]).unwrap();
        is_ready(pass.ready());
        t.attempt("nothing", pass.commit(&[]));
    }
    say!(t, "context", context.tokens());
    let context = raw_filled("A");
    let pass = started(&context, &[66]).unwrap();
    t.attempt("too early", pass.commit(&[1]));
    is_ready(pass.ready());
    t.attempt("all", pass.commit(&[1]));
    t.attempt("twice", pass.commit(&[1]));
    say!(t, "length", context.length());
}

async fn discard(t: &mut Transcript) {
    let context = raw_filled("A");
    let pass = started(&context, &[66]).unwrap();
    is_ready(pass.ready());
    t.attempt("busy", context.fill("x"));
    say!(t, "a fork has none of it", context.fork().unwrap().tokens());
    pass.discard();
    pass.discard();
    t.attempt("free", context.fill("x"));
    say!(t, "context", context.tokens());
}

async fn many(t: &mut Transcript) {
    let contexts: Vec<contexts::Context> = (0..65).map(|_| raw_filled("A")).collect();
    let passes: Vec<forward::Pass> = contexts[..64].iter().map(|context| started(context, &[66]).unwrap()).collect();
    t.attempt("one more", started(&contexts[64], &[66]));
    drop(passes);
    t.attempt("with room", started(&contexts[64], &[66]));
}

async fn scoring(t: &mut Transcript) {
    let mut context = filled("A");
    say!(t, "scores", context.score(&["BCD", "BX", "Q"]).await.unwrap());
    let each: Vec<f32> = context.logprobs("BCX").await.unwrap().iter().map(|each| each.log_probability).collect();
    say!(t, "one by one", each);
    let ahead = context.next_distribution(2).await.unwrap();
    say!(t, "ahead", ahead.top.iter().map(|each| each.token).collect::<Vec<_>>(), ahead.entropy);
    say!(t, "context", context.tokens());
}

async fn verify(t: &mut Transcript) {
    let mut context = filled("A");
    say!(t, "right for a while", context.verify(&[66, 67, 90, 91], &Sampler::greedy(), 0).await.unwrap());
    say!(t, "context", context.tokens());
    say!(t, "wrong at once", context.verify(&[1], &Sampler::greedy(), 0).await.unwrap());
    t.attempt("too long", context.verify(&[66; 64], &Sampler::greedy(), 0).await);
}

cases! {
    "forward.forward" => forward,
    "forward.limits" => limits,
    "forward.tree" => tree,
    "forward.pass.ready" => ready,
    "forward.pass.read" => read,
    "forward.pass.commit" => commit,
    "forward.pass.discard" => discard,
    "forward.many" => many,
    "forward.scoring" => scoring,
    "forward.verify" => verify,
}
