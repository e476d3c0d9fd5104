//! Trees of forks.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::future::join_all;
use futures::join;
use inferlet::stop_condition::max_len;
use inferlet::{Context, Sampler, StopCondition};

use crate::common::{filled, generated};
use crate::transcript::Transcript;
use crate::{cases, say};

fn grow(mut context: Context, depth: usize) -> Pin<Box<dyn Future<Output = Vec<String>>>> {
    Box::pin(async move {
        if depth == 0 {
            return vec![generated(&mut context).await.unwrap().text];
        }
        let (mut left, mut right) = (context.fork(), context.fork());
        left.fill("l");
        right.fill("r");
        let (mut texts, others) = join!(grow(left, depth - 1), grow(right, depth - 1));
        texts.extend(others);
        texts
    })
}

async fn binary(t: &mut Transcript) {
    say!(t, "leaves", grow(filled("root:"), 5).await);
}

async fn chain(t: &mut Transcript) {
    let mut context = filled("0");
    for i in 1..100 {
        let mut child = context.fork();
        child.fill(&(i % 10).to_string());
        context = child;
    }
    let draft = context.generate(Sampler::greedy(), max_len(5)).draft().await.unwrap();
    say!(t, "length", context.len(), draft.text);
}

async fn parents_go_first(t: &mut Transcript) {
    let mut parent = filled(&"0123456789abcdef".repeat(4));
    parent.flush().await.unwrap();
    let mut children: Vec<Context> = (0..8).map(|_| parent.fork()).collect();
    drop(parent);
    children[0].truncate(3).unwrap();
    children[1].fill("!");
    let running = children.iter_mut().map(|child| child.generate(Sampler::greedy(), max_len(2)).draft());
    let usages: Vec<_> = join_all(running).await.into_iter().map(|draft| draft.unwrap().usage).collect();
    say!(t, "cached", usages.iter().map(|usage| usage.cached_tokens).collect::<Vec<_>>());
    say!(t, "lengths", children.iter().map(Context::len).collect::<Vec<_>>());
    say!(t, "shared", usages[2].pages, usages[2].shared_pages);
}

async fn while_generating(t: &mut Transcript) {
    let mut context = filled("endless");
    let running = context.generate(Sampler::greedy(), StopCondition::default()).chunk_interval(Duration::ZERO);
    let mut chunks = running.chunks().await.unwrap();
    chunks.next().await;
    let mut child = chunks.context().fork();
    let begins = chunks.context().tokens()[..7].to_vec();
    say!(t, "has what is there", child.len() > 7, child.tokens()[..7] == begins);
    chunks.cancel();
    while chunks.next().await.is_some() {}
    child.truncate(7).unwrap();
    say!(t, "its own", child.tokens() == begins);
}

cases! {
    "trees.binary" => binary,
    "trees.chain" => chain,
    "trees.parents-go-first" => parents_go_first,
    "trees.while-generating" => while_generating,
}
