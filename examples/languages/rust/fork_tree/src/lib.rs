//! A tree of forks: each branch goes on with a seed of its own, and what it shares with others is computed once.

use futures::future::join_all;
use inferlet::stop_condition::max_len;
use inferlet::{get_auto_model, Context, Result, Sampler};
use serde::Deserialize;

#[derive(Deserialize)]
struct Input {
    branches: usize,
    depth: u64,
}

#[inferlet::main]
async fn main(input: Input) -> Result<Vec<Vec<u32>>> {
    let mut root = get_auto_model().create_context();
    root.fill("Once upon a time");
    let mut level = vec![root];
    for each in 1..=input.depth {
        level = level.iter().flat_map(|context| (0..input.branches).map(|_| context.fork())).collect();
        let generations = level.iter_mut().zip(0u64..).map(|(context, k)| {
            let sampler = Sampler::temperature(0.9).with_seed(1000 * each + k);
            context.generate(sampler, max_len(6))
        });
        join_all(generations).await;
    }
    Ok(level.iter().map(Context::tokens).collect())
}
