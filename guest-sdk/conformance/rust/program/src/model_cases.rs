//! Models and their tokenizers.

use inferlet::{available_models, get_auto_model, get_model, Constraint, Matcher, ModelInfo, Sampler, StopCondition};

use crate::common::{generated, raw_model};
use crate::transcript::Transcript;
use crate::{cases, say};

async fn open(t: &mut Transcript) {
    say!(t, "default", get_auto_model().name());
    say!(t, "by name", get_model("fake").unwrap().name());
    t.attempt("unknown", get_model("no such model"));
    t.attempt("empty name", get_model(""));
}

fn sorted(texts: &[String]) -> Vec<String> {
    let mut texts = texts.to_vec();
    texts.sort();
    texts
}

fn say_info(t: &mut Transcript, info: &ModelInfo) {
    say!(t, "name", info.name);
    say!(t, "architecture", info.architecture);
    say!(t, "numbers", info.context_length, info.vocabulary_size, info.page_size);
    say!(t, "eos tokens", info.eos_tokens);
    say!(t, "features", sorted(&info.features));
    say!(t, "adapters", info.adapters);
}

async fn info(t: &mut Transcript) {
    say_info(t, get_auto_model().info());
}

async fn list_models(t: &mut Transcript) {
    let models = available_models();
    say!(t, "how many", models.len());
    say_info(t, &models[0]);
}

async fn tokenize(t: &mut Transcript) {
    let model = get_auto_model();
    say!(t, "empty", model.tokenize("").unwrap());
    say!(t, "ascii", model.tokenize("Hi").unwrap());
    say!(t, "special", model.tokenize("a<|im_end|>b").unwrap());
    say!(t, "four bytes", model.tokenize("😀").unwrap());
}

async fn detokenize(t: &mut Transcript) {
    let model = get_auto_model();
    say!(t, "empty", model.detokenize(&[]).unwrap());
    say!(t, "text", model.detokenize(&[72, 105, 256]).unwrap());
    say!(t, "half a character", model.detokenize(&[0xF0, 0x9F]).unwrap());
    t.attempt("out of range", model.detokenize(&[1, 258]));
    t.attempt("largest", model.detokenize(&[u32::MAX]));
}

async fn token_bytes(t: &mut Transcript) {
    let model = get_auto_model();
    say!(t, "zero", model.token_bytes(0).unwrap());
    say!(t, "not a character", model.token_bytes(255).unwrap());
    say!(t, "special", model.token_bytes(256).unwrap());
    t.attempt("out of range", model.token_bytes(258));
}

async fn vocabulary(t: &mut Transcript) {
    let tokens = get_auto_model().vocabulary().unwrap();
    say!(t, "how many", tokens.len());
    say!(t, "some", tokens[0], tokens[65], tokens[255], tokens[257]);
    let model = raw_model();
    say!(t, "two of them", model.vocabulary(65, 2).unwrap());
    say!(t, "beyond the end", model.vocabulary(257, u32::MAX).unwrap());
    t.attempt("none", model.vocabulary(258, 1));
    t.attempt_shown("no tokens", model.vocabulary(0, 0));
}

async fn unsupported(t: &mut Transcript) {
    let model = get_auto_model();
    say!(t, "features", sorted(&model.info().features));
    let mut context = model.create_context();
    t.attempt("a message", context.try_fill_message(inferlet::Role::User, "Hi"));
    t.attempt("a turn", context.cue());
    context.fill("0123");
    t.attempt("eviction", context.evict(0, 1).await);
    let letter = Constraint::regex("a");
    let constrained = context.generate(Sampler::greedy(), StopCondition::default()).constraint(letter.clone());
    let refused = constrained.draft().await;
    t.attempt("a constraint", refused);
    t.attempt("a matcher", Matcher::begin(&model, &letter).await);
    say!(t, "it can generate", generated(&mut context).await.unwrap().text);
}

cases! {
    "models.model.open" => open,
    "models.model.info" => info,
    "models.list-models" => list_models,
    "models.model.tokenize" => tokenize,
    "models.model.detokenize" => detokenize,
    "models.model.token-bytes" => token_bytes,
    "models.model.vocabulary" => vocabulary,
    "models.unsupported" => unsupported,
}
