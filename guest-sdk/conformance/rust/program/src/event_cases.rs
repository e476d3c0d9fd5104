//! Waiting: the contract's own calls, and what the SDK makes of them.

use std::cell::RefCell;
use std::time::Duration;

use futures::future::{join_all, select, Either};
use futures::join;
use inferlet::wit::{contexts::SaveOptions, events};
use inferlet::{get_auto_model, sleep, timeout, variables, Context, Sampler, StopCondition};

use crate::common::{filled, generated, is_ready, raw_filled, HOUR_NS};
use crate::transcript::Transcript;
use crate::{cases, say};

async fn poll(t: &mut Transcript) {
    let (first, second, late) = (events::timer(0), events::timer(0), events::timer(HOUR_NS));
    is_ready(first);
    is_ready(second);
    say!(t, "in the order given", events::poll(&[second, late, first], None) == [second, first]);
    say!(t, "one twice", events::poll(&[first, first], None) == [first, first]);
    say!(t, "still ready", events::poll(&[first], Some(0)) == [first]);
    say!(t, "only a look", events::poll(&[late], Some(0)));
    say!(t, "the time passes", events::poll(&[late], Some(1_000_000)));
    say!(t, "nothing, for a while", events::poll(&[], Some(1_000_000)));
    say!(t, "ready with a timeout of 2^64 - 1", events::poll(&[first], Some(u64::MAX)) == [first]);
}

async fn timer(t: &mut Transcript) {
    let (soon, never) = (events::timer(1_000_000), events::timer(u64::MAX));
    say!(t, "other ids", soon != never);
    say!(t, "the soon one", events::poll(&[never, soon], None) == [soon]);
    t.attempt("outcome", events::outcome(soon));
}

async fn outcome(t: &mut Transcript) {
    let ready = events::timer(0);
    is_ready(ready);
    t.attempt("ready", events::outcome(ready));
    let context = raw_filled("x");
    for label in ["ok", "failed"] {
        let saved = context.save("taken", &SaveOptions { ttl_ns: None, overwrite: false }).unwrap();
        is_ready(saved);
        t.attempt(label, events::outcome(saved));
    }
}

async fn drop_event(t: &mut Transcript) {
    for _ in 0..5000 {
        events::drop_event(events::timer(HOUR_NS)); // more than a run may hold
    }
    say!(t, "dropped", 5000);
}

async fn gather(t: &mut Transcript) {
    let mut contexts: Vec<Context> = (0..100).map(|i| filled(&format!("number {i}"))).collect();
    let drafts = join_all(contexts.iter_mut().map(generated)).await;
    say!(t, "texts", drafts.into_iter().map(|draft| draft.unwrap().text).collect::<Vec<_>>());
}

async fn many_timers(t: &mut Transcript) {
    let done = RefCell::new(Vec::new());
    let one = |i: u64| {
        let done = &done;
        async move {
            sleep(Duration::from_millis(i % 3)).await;
            done.borrow_mut().push(i);
        }
    };
    join_all((0..600).map(one)).await;
    let done = done.into_inner();
    say!(t, "done", done.len(), done.iter().sum::<u64>());
}

async fn first_of_two(t: &mut Transcript) {
    let (mut long, mut short) = (filled("endless"), filled("short"));
    let (which, text) = {
        let both = (Box::pin(generated(&mut long)), Box::pin(generated(&mut short)));
        match select(both.0, both.1).await {
            Either::Left((draft, _)) => (0, draft.unwrap().text),
            Either::Right((draft, _)) => (1, draft.unwrap().text),
        }
    };
    say!(t, "which", [which]);
    say!(t, "text", text);
    t.attempt("the other's context is free", long.truncate(3));
}

async fn timed_out(t: &mut Transcript) {
    let mut context = filled("endless");
    if timeout(Duration::from_millis(30), generated(&mut context)).await.is_err() {
        say!(t, "timed out", true);
    }
    t.attempt("the context is free", context.truncate(7));
    say!(t, "tokens", context.tokens());
}

async fn timeout_of_nothing(t: &mut Transcript) {
    for (label, time) in [("timed out", 20), ("at once", 0)] {
        if timeout(Duration::from_millis(time), variables::wait("never", 0)).await.is_err() {
            say!(t, label, true);
        }
    }
}

async fn error_of_one(t: &mut Transcript) {
    let (mut good, mut bad) = (filled("good"), get_auto_model().create_context());
    bad.fill_user("fail");
    let (good, bad) = join!(generated(&mut good), generated(&mut bad));
    t.attempt("the bad one", bad);
    say!(t, "the good one", good.unwrap().text);
}

async fn deadlock(t: &mut Transcript) {
    t.attempt("nobody is left", variables::wait("never", 0).await);
    let (first, second) = join!(variables::wait("this", 0), variables::wait("that", 0));
    t.attempt("the first", first);
    t.attempt("the second", second);
    say!(t, "goes on", variables::set("this", "x").unwrap());
}

async fn cancelled_early(t: &mut Transcript) {
    let mut context = filled("endless");
    let mut chunks = context.generate(Sampler::greedy(), StopCondition::default()).chunks().await.unwrap();
    chunks.cancel();
    while chunks.next().await.is_some() {}
    let draft = chunks.draft().unwrap();
    say!(t, "draft", draft.finish_reason, draft.tokens.len() < 1500);
}

async fn dropped(t: &mut Transcript) {
    let mut context = filled("endless");
    {
        let mut chunks = context.generate(Sampler::greedy(), StopCondition::default()).chunks().await.unwrap();
        chunks.next().await;
    }
    t.attempt("the context is free", context.truncate(7));
    let mut forks: Vec<Context> = (0..200).map(|_| context.fork()).collect();
    join_all(forks.iter_mut().map(Context::flush)).await;
    say!(t, "forks", forks.len());
}

cases! {
    "events.poll" => poll,
    "events.timer" => timer,
    "events.outcome" => outcome,
    "events.drop-event" => drop_event,
    "waiting.gather" => gather,
    "waiting.many-timers" => many_timers,
    "waiting.first-of-two" => first_of_two,
    "waiting.timeout" => timed_out,
    "waiting.timeout-of-nothing" => timeout_of_nothing,
    "waiting.error-of-one" => error_of_one,
    "waiting.deadlock" => deadlock,
    "waiting.cancelled-before-it-began" => cancelled_early,
    "waiting.dropped" => dropped,
}
