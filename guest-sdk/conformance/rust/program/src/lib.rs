//! The conformance suite in Rust: runs the case that its input names, and returns the lines of its transcript.

mod common;
mod constraint_cases;
mod context_cases;
mod event_cases;
mod failure_cases;
mod forward_cases;
mod generation_cases;
mod model_cases;
mod run_cases;
mod steered_cases;
mod stepping_cases;
mod store_cases;
mod text_cases;
mod tiny_cases;
mod transcript;
mod tree_cases;

use inferlet::{Args, Result};
use transcript::Transcript;

macro_rules! subjects {
    ($($subject:ident),+) => {
        fn names() -> Vec<String> {
            let mut names: Vec<String> = [$($subject::NAMES),+].concat().iter().map(|name| name.to_string()).collect();
            names.sort();
            names
        }

        async fn run_case(name: &str, t: &mut Transcript) -> bool {
            $($subject::run(name, t).await)||+
        }
    };
}
subjects!(
    constraint_cases,
    context_cases,
    event_cases,
    failure_cases,
    forward_cases,
    generation_cases,
    model_cases,
    run_cases,
    steered_cases,
    stepping_cases,
    store_cases,
    text_cases,
    tiny_cases,
    tree_cases
);

#[inferlet::main]
async fn main(args: Args) -> Result<Vec<String>> {
    let name: String = args.require("case")?;
    if name == "list" {
        return Ok(names());
    }
    let mut transcript = Transcript::default();
    if !run_case(&name, &mut transcript).await {
        return Err(format!("there is no case {name}").into());
    }
    Ok(transcript.lines)
}
