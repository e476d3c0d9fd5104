//! Reads a generation as it comes, and ends it once the text has enough sentences.

use std::io::Write;
use std::time::Duration;

use inferlet::stop_condition::max_len;
use inferlet::{get_auto_model, Args, Result, Sampler};

#[inferlet::main]
async fn main(args: Args) -> Result<usize> {
    let sentences: usize = args.get_or("sentences", 2)?;
    let mut context = get_auto_model().create_context();
    context.fill_user(&args.get_or("question", "Tell me of tarts.".to_owned())?);
    let generation = context.generate(Sampler::top_p(0.7, 0.95).with_seed(7), max_len(200));
    let mut chunks = generation.chunk_interval(Duration::ZERO).chunks().await?;
    let mut text = String::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        print!("{}", chunk.text);
        std::io::stdout().flush().ok();
        text.push_str(&chunk.text);
        if text.matches('.').count() >= sentences {
            chunks.cancel();
        }
    }
    println!();
    Ok(chunks.draft()?.tokens.len())
}
