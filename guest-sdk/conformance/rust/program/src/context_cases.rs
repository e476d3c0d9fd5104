//! Contexts, saved ones too.

use std::time::Duration;

use inferlet::stop_condition::max_len;
use inferlet::wit::contexts;
use inferlet::wit::{events, generation};
use inferlet::{get_auto_model, Context, Role, Sampler, Usage};

use crate::common::{filled, generated, greedy, is_ready, never, options, raw_filled, raw_model, raw_started, HOUR_NS};
use crate::transcript::Transcript;
use crate::{cases, say};

async fn create(t: &mut Transcript) {
    let model = get_auto_model();
    say!(t, "empty", model.create_context().tokens());
    say!(t, "with an adapter", model.create_context_with_adapter("polite").unwrap().tokens());
    t.attempt("unknown adapter", model.create_context_with_adapter("rude"));
    t.attempt("no name", model.create_context_with_adapter(""));
}

async fn fill(t: &mut Transcript) {
    let mut context = get_auto_model().create_context();
    context.fill("");
    say!(t, "nothing", context.len());
    context.fill("Aé");
    context.fill("<|im_end|>");
    say!(t, "filled", context.tokens());
    t.attempt("too long", context.try_fill(&"x".repeat(2045)));
    t.attempt("as long as can be", context.try_fill(&"x".repeat(2044)));
    say!(t, "length", context.len());
}

async fn fill_tokens(t: &mut Transcript) {
    let mut context = get_auto_model().create_context();
    t.attempt("none", context.try_fill_tokens(&[]));
    t.attempt("some", context.try_fill_tokens(&[0, 257, 65]));
    t.attempt("out of range", context.try_fill_tokens(&[65, 258]));
    t.attempt("largest", context.try_fill_tokens(&[u32::MAX]));
    say!(t, "filled", context.tokens());
}

fn text_of(context: &Context) -> String {
    context.model().detokenize(&context.tokens()).unwrap()
}

async fn fill_message(t: &mut Transcript) {
    let mut context = get_auto_model().create_context();
    context.fill_system("Be <|im_end|> brief.");
    context.fill_user("Hi");
    context.fill_assistant("Hello");
    context.fill_tool("42");
    say!(t, "special tokens stay text", context.tokens()[..16]);
    say!(t, "text", text_of(&context));
    t.attempt("system not first", context.try_fill_message(Role::System, "Be long."));
    say!(t, "nothing was added", context.len());
}

async fn cue(t: &mut Transcript) {
    let mut context = get_auto_model().create_context();
    context.fill_user("Hi");
    context.cue().unwrap();
    say!(t, "text", text_of(&context));
    context.fill("Well");
    context.fill_user("What?");
    say!(t, "the turn is closed", text_of(&context));
}

async fn usage_of_one_token(context: &mut Context) -> Usage {
    context.generate(Sampler::greedy(), max_len(1)).draft().await.unwrap().usage
}

async fn flush(t: &mut Transcript) {
    let mut context = filled("0123456789abcdef0123");
    t.attempt("flushed", context.flush().await);
    t.attempt("again", context.flush().await);
    let usage = usage_of_one_token(&mut context).await;
    say!(t, "cached", usage.prompt_tokens, usage.cached_tokens);
    t.attempt("an empty one", get_auto_model().create_context().flush().await);
}

async fn fork(t: &mut Transcript) {
    let mut context = filled("0123456789abcdef0123");
    let mut child = context.fork();
    child.fill("x");
    context.fill("yz");
    let (ours, theirs) = (context.tokens(), child.tokens());
    say!(t, "lengths", ours.len(), theirs.len());
    say!(t, "ends", ours[ours.len() - 2..], theirs[theirs.len() - 2..]);
    let usage = usage_of_one_token(&mut child).await;
    say!(t, "cached and shared", usage.cached_tokens, usage.pages, usage.shared_pages);
}

async fn length(t: &mut Transcript) {
    let mut context = get_auto_model().create_context();
    say!(t, "empty", context.len());
    context.fill_tokens(&[1, 2, 3]);
    say!(t, "three", context.len());
}

async fn positions(t: &mut Transcript) {
    let mut context = filled("0123456789");
    say!(t, "before", context.positions());
    context.evict(2, 5).await.unwrap();
    say!(t, "after", context.positions(), context.len());
}

async fn tokens(t: &mut Transcript) {
    let mut context = get_auto_model().create_context();
    say!(t, "empty", context.tokens());
    context.fill_tokens(&[257, 0, 257]);
    say!(t, "three", context.tokens());
}

async fn truncate(t: &mut Transcript) {
    let mut context = filled("0123456789");
    t.attempt("to four", context.truncate(4));
    say!(t, "tokens", context.tokens());
    t.attempt("to as many", context.truncate(4));
    t.attempt("to more", context.truncate(5));
    t.attempt("to far more", context.truncate(4294967295));
    t.attempt("to none", context.truncate(0));
    say!(t, "length", context.len());
}

async fn evict(t: &mut Transcript) {
    let mut context = filled("0123456789");
    t.attempt("the middle", context.evict(2, 5).await);
    say!(t, "tokens", context.tokens());
    t.attempt("the last one", context.evict(6, 7).await);
    t.attempt("out of order", context.evict(3, 1).await);
    t.attempt("too many", context.evict(0, 4294967295).await);
    t.attempt("none", context.evict(1, 1).await);
    say!(t, "length", context.len(), context.positions());
}

const HOUR: Option<Duration> = Some(Duration::from_secs(3600));

async fn save(t: &mut Transcript) {
    let mut context = filled("Remember me.");
    t.attempt("saved", context.save("a/b:c-d_e.f", None, false).await);
    t.attempt("taken", context.save("a/b:c-d_e.f", None, false).await);
    t.attempt("overwritten", context.save("a/b:c-d_e.f", None, true).await);
    t.attempt("kept for a while", context.save("later", HOUR, false).await);
    t.attempt("no name", context.save("", None, false).await);
    t.attempt("bad name", context.save("naïve", None, false).await);
    t.attempt("bad beginning", context.save("-x", None, false).await);
    t.attempt("long name", context.save(&"n".repeat(129), None, false).await);
    let names: Vec<String> = Context::saved().unwrap().into_iter().map(|each| each.name).collect();
    say!(t, "names", names);
}

async fn open(t: &mut Transcript) {
    let model = get_auto_model();
    let mut context = model.create_context();
    context.fill_user("Remember me.");
    context.save("mine", None, false).await.unwrap();
    context.fill_user("And this.");
    let mut opened = Context::open(&model, "mine").await.unwrap();
    say!(t, "text", text_of(&opened));
    let draft = generated(&mut opened).await.unwrap();
    say!(t, "goes on", draft.text, draft.usage.cached_tokens);
    t.attempt("unknown", Context::open(&model, "yours").await);
    t.attempt("bad name", Context::open(&model, "not a name").await);
}

async fn begin_to_open() -> contexts::Opening {
    filled("Remember me.").save("mine", None, false).await.unwrap();
    contexts::Context::open(&raw_model(), "mine").unwrap()
}

async fn opening_ready(t: &mut Transcript) {
    let opening = begin_to_open().await;
    let event = opening.ready();
    say!(t, "the same at every call", opening.ready() == event);
    say!(t, "ready", is_ready(event));
    say!(t, "still ready", events::poll(&[event], Some(0)) == [event]);
}

async fn opening_take(t: &mut Transcript) {
    let opening = begin_to_open().await;
    t.attempt("too early", opening.take());
    is_ready(opening.ready());
    say!(t, "length", opening.take().unwrap().length());
    t.attempt("twice", opening.take());
}

async fn list_saved(t: &mut Transcript) {
    say!(t, "none", Context::saved().unwrap().len());
    filled("Remember me.").save("b", None, false).await.unwrap();
    let mut polite = get_auto_model().create_context_with_adapter("polite").unwrap();
    polite.fill("Please.");
    polite.save("a", HOUR, false).await.unwrap();
    let saved = Context::saved().unwrap();
    for each in &saved {
        say!(t, "saved", each.name, each.model, each.adapter, each.tokens, each.bytes);
        say!(t, "for ever", each.expires_in_ns.is_none());
    }
    let left = saved[0].expires_in_ns.unwrap_or(0);
    say!(t, "about an hour is left", HOUR_NS / 6 * 5 < left && left <= HOUR_NS);
}

async fn delete_saved(t: &mut Transcript) {
    filled("Remember me.").save("mine", None, false).await.unwrap();
    let opened = Context::open(&get_auto_model(), "mine").await.unwrap();
    t.attempt("deleted", Context::delete("mine"));
    t.attempt("again", Context::delete("mine"));
    t.attempt("bad name", Context::delete(""));
    say!(t, "opened before", opened.len());
    say!(t, "left", Context::saved().unwrap().len());
}

/// The SDK's own contexts cannot be touched while a generation borrows them: this is by the bindings.
async fn busy(t: &mut Transcript) {
    let context = raw_filled("endless");
    let running = raw_started(&context, true);
    running.next().unwrap();
    t.attempt("fill", context.fill("x"));
    t.attempt("truncate", context.truncate(1));
    t.attempt("flush", context.flush());
    t.attempt("another generation", generation::generate(&context, &greedy(), &never(), &options(false)));
    let child = context.fork().unwrap();
    say!(t, "a fork has what is there", child.tokens()[..8]);
    t.attempt("and is free", child.fill("x"));
    running.cancel();
    let finish = loop {
        if let Some(finish) = running.next().unwrap().finish {
            break finish;
        }
    };
    say!(t, "finish", finish.reason);
    t.attempt("free again", context.fill("x"));
}

async fn kv_exhausted(t: &mut Transcript) {
    let mut contexts = Vec::new();
    for name in ["first", "second", "third"] {
        let mut context = filled(&name[..1].repeat(2000));
        t.attempt(name, context.flush().await);
        contexts.push(context);
    }
    let mut third = contexts.pop().unwrap();
    contexts.remove(0);
    t.attempt("with room", third.flush().await);
}


cases! {
    "contexts.context.create" => create,
    "contexts.context.fill" => fill,
    "contexts.context.fill-tokens" => fill_tokens,
    "contexts.context.fill-message" => fill_message,
    "contexts.context.cue" => cue,
    "contexts.context.flush" => flush,
    "contexts.context.fork" => fork,
    "contexts.context.length" => length,
    "contexts.context.positions" => positions,
    "contexts.context.tokens" => tokens,
    "contexts.context.truncate" => truncate,
    "contexts.context.evict" => evict,
    "contexts.context.save" => save,
    "contexts.context.open" => open,
    "contexts.opening.ready" => opening_ready,
    "contexts.opening.take" => opening_take,
    "contexts.list-saved" => list_saved,
    "contexts.delete-saved" => delete_saved,
    "contexts.busy" => busy,
    "contexts.kv-exhausted" => kv_exhausted,
}
