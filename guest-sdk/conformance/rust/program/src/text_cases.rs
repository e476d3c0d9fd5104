//! Text on its way through the host: every plane of Unicode, and large inputs.

use std::time::Duration;

use inferlet::stop_condition::max_len;
use inferlet::{get_auto_model, get_model, variables, Context, Sampler, StopCondition};

use crate::common::filled;
use crate::transcript::Transcript;
use crate::{cases, say};

const TEXTS: [&str; 9] =
    ["", "\0", "a\tb\r\n", "quote \" and \\", "é", "\u{301}", "你好", "😀👩‍👩‍👧", "\u{feff}\u{ffff}\u{10ffff}"];

async fn unicode(t: &mut Transcript) {
    let model = get_auto_model();
    for text in TEXTS {
        let tokens = model.tokenize(text).unwrap();
        say!(t, "tokens", tokens);
        say!(t, "and back", model.detokenize(&tokens).unwrap() == text);
        variables::set("x", text).unwrap();
        say!(t, "variable", variables::get("x").unwrap().value == text);
    }
}

async fn split_characters(t: &mut Transcript) {
    let mut context = filled("é😀你");
    let running = context.generate(Sampler::greedy(), StopCondition::default()).chunk_interval(Duration::ZERO);
    let mut chunks = running.chunks().await.unwrap();
    let (mut text, mut is_whole) = (String::new(), true);
    while let Some(chunk) = chunks.next().await {
        let added = chunk.unwrap().text;
        is_whole &= !added.contains('\u{fffd}');
        text += &added;
    }
    say!(t, "whole characters only", is_whole, text);
    let draft = filled("é😀").generate(Sampler::greedy(), max_len(3)).draft().await.unwrap();
    say!(t, "cut in the middle", draft.text, draft.tokens);
    let draft = filled("😀x").generate(Sampler::greedy(), max_len(4)).draft().await.unwrap();
    say!(t, "cut after it", draft.text);
}

async fn names(t: &mut Transcript) {
    let model = get_auto_model();
    t.attempt("a model", get_model("naïve 😀"));
    t.attempt("an adapter", model.create_context_with_adapter("höflich"));
    t.attempt("a saved context", Context::open(&model, "😀").await);
    t.attempt("with a quote", get_model("a \"quoted\" \\ name\nof two lines"));
    t.attempt("a long name", get_model(&"n".repeat(300)));
}

async fn large(t: &mut Transcript) {
    let model = get_auto_model();
    let text = "0123456789abcdé".repeat(20000);
    let tokens = model.tokenize(&text).unwrap();
    say!(t, "tokens", tokens.len(), tokens[tokens.len() - 3..]);
    say!(t, "and back", model.detokenize(&tokens).unwrap() == text);
    t.attempt("as a context", model.create_context().try_fill(&text));
    t.attempt_shown("as a variable", variables::set("x", &text));
    say!(t, "the same", variables::get("x").unwrap().value == text);
    t.attempt("too large", model.tokenize(&"x".repeat(8 * 1024 * 1024 + 1)));
}

async fn large_lists(t: &mut Transcript) {
    let mut context = get_auto_model().create_context();
    let given: Vec<u32> = (0..2000).map(|i| i % 256).collect();
    context.fill_tokens(&given);
    let tokens = context.tokens();
    say!(t, "tokens", tokens.len(), tokens[0], tokens[1999], tokens.iter().sum::<u32>());
    t.attempt("too many", context.try_fill_tokens(&[0; 100_000]));
}

cases! {
    "text.unicode" => unicode,
    "text.split-characters" => split_characters,
    "text.names-and-errors" => names,
    "text.large" => large,
    "text.large-lists" => large_lists,
}
