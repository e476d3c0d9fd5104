//! Decides token by token: begins with given words, never writes a digit, and tries two ends of the same text.

use inferlet::stop_condition::max_len;
use inferlet::{get_auto_model, Args, Mask, Result, Sampler, Step};

#[inferlet::main]
async fn main(args: Args) -> Result<Vec<String>> {
    let model = get_auto_model();
    let length: usize = args.get_or("length", 12)?;
    let no_digits = Mask::filter(&model, |bytes| !bytes.iter().any(u8::is_ascii_digit))?;
    let mut context = model.create_context();
    context.fill_user("Name a tart.");
    let mut steps = context.steps(Sampler::greedy(), max_len(length)).start().await?;
    steps.force("One is the").await?;
    let step = Step { mask: Some(no_digits), ..Step::default() };
    while steps.finish_reason().is_none() && steps.tokens().len() + 4 < length {
        steps.next_with(&step).await?;
    }
    let mut other = steps.fork(None)?;
    if steps.finish_reason().is_none() {
        steps.force(" of course").await?;
        other.force(" perhaps").await?;
    }
    Ok(vec![steps.text().to_owned(), other.text().to_owned()])
}
