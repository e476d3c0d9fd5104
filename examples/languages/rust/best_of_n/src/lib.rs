//! Best of N: forks that share one prompt generate side by side, and another context judges them.

use futures::future::join_all;
use inferlet::stop_condition::{ends_with_any, max_len};
use inferlet::{get_auto_model, Args, Result, Sampler};

#[inferlet::main]
async fn main(_args: Args) -> Result<String> {
    let model = get_auto_model();

    // Start with a single base context that sets up the shared prefix once.
    let mut base = model.create_context();
    base.fill_user("Write a catchy, on-brand email subject line for a 20% off Fall skincare sale.");

    // Fork N contexts that share the same prefix (KV cache) as `base`.
    let n = 5usize;
    let mut forks: Vec<_> = (0..n).map(|_| base.fork()).collect();

    // Launch N generations in parallel. Each fork can tweak sampling a bit if desired.
    let gens = forks.iter_mut().enumerate().map(|(i, ctx)| {
        // Slightly vary sampler parameters per fork to diversify candidates.
        // (Feel free to swap strategies: top_k, temperature, etc.)
        let sampler = if i % 2 == 0 {
            Sampler::top_p(0.7, 0.95)
        } else {
            Sampler::top_k(40)
        };

        ctx.generate(sampler, ends_with_any(model.eos_tokens()).and(max_len(64)))
    });

    let candidates: Vec<String> = join_all(gens)
        .await
        .into_iter()
        .map(|s| s.trim().to_string())
        .collect();

    // Judge the candidates in a new context.
    let mut judge = model.create_context();
    let list: Vec<String> = candidates.iter().enumerate().map(|(i, line)| format!("{}. {line}", i + 1)).collect();
    judge.fill_user(&format!("Which of these subject lines will get more opens?\n{}\nReply with its number.", list.join("\n")));
    let verdict = judge.generate(Sampler::greedy(), max_len(8)).await;
    let number = verdict.chars().find_map(|character| character.to_digit(10)).unwrap_or(1) as usize;
    let best = candidates.get(number.saturating_sub(1)).unwrap_or(&candidates[0]);
    println!("The best of {n}: {best}");
    Ok(best.clone())
}
