//! Runs that end without a result: the host says how.

use inferlet::stop_condition::ignore_eos;
use inferlet::wit::{constraints, contexts, events, log};
use inferlet::Sampler;

use crate::common::{filled, raw_model, HOUR_NS};
use crate::transcript::Transcript;
use crate::{cases, say};

async fn error(_: &mut Transcript) {
    panic!("the reason is seven é");
}

async fn uncaught(_: &mut Transcript) {
    filled("abc").truncate(7).unwrap();
}

fn down(number: u64) -> u64 {
    std::hint::black_box(down(number + 1)) + number
}

async fn recursion(t: &mut Transcript) {
    say!(t, "never", down(0));
}

async fn memory(_: &mut Transcript) {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        held.push(vec![1; 1 << 20]);
    }
}

async fn cpu(_: &mut Transcript) {
    loop {
        std::hint::black_box(());
    }
}

async fn wall_time(_: &mut Transcript) {
    events::poll(&[events::timer(HOUR_NS)], None);
}

async fn tokens(_: &mut Transcript) {
    let _ = filled("endless").generate(Sampler::greedy(), ignore_eos()).draft().await;
}

async fn kv_pages(_: &mut Transcript) {
    let mut contexts: Vec<_> = (0..3).map(|_| filled(&"0123456789abcdef".repeat(4))).collect();
    for context in &mut contexts {
        let _ = context.flush().await;
    }
}

async fn handles(_: &mut Transcript) {
    loop {
        events::timer(HOUR_NS);
    }
}

async fn output(_: &mut Transcript) {
    for _ in 0..100 {
        log::print(&"x".repeat(100));
    }
}

async fn host_calls(_: &mut Transcript) {
    loop {
        events::poll(&[], Some(0));
    }
}

async fn unknown_event(_: &mut Transcript) {
    events::poll(&[u32::MAX], Some(0));
}

async fn event_twice(_: &mut Transcript) {
    let event = events::timer(0);
    events::drop_event(event);
    events::drop_event(event);
}

async fn unknown_mask(_: &mut Transcript) {
    let mask = constraints::Mask::tokens(&raw_model(), &[7]).unwrap();
    let _ = mask.union(&[u32::MAX]);
}

async fn poll_of_nothing(_: &mut Transcript) {
    events::poll(&[], None);
}

async fn leaked(t: &mut Transcript) {
    let model = raw_model();
    let mut count = 0;
    for i in 0..300 {
        let context = contexts::Context::create(&model, None).unwrap();
        context.fill(&format!("context {i}")).unwrap();
        std::mem::forget(context.fork().unwrap());
        std::mem::forget(context);
        events::timer(HOUR_NS);
        count += 2;
    }
    say!(t, "leaked", count);
}

async fn given_back(t: &mut Transcript) {
    let parent = filled("x");
    for _ in 0..5000 {
        parent.fork(); // more than a run may hold
    }
    say!(t, "forks", 5000);
}

cases! {
    "failures.error" => error,
    "failures.uncaught-refusal" => uncaught,
    "failures.recursion" => recursion,
    "failures.memory" => memory,
    "failures.cpu" => cpu,
    "failures.wall-time" => wall_time,
    "failures.tokens" => tokens,
    "failures.kv-pages" => kv_pages,
    "failures.handles" => handles,
    "failures.output" => output,
    "failures.host-calls" => host_calls,
    "failures.unknown-event" => unknown_event,
    "failures.event-twice" => event_twice,
    "failures.unknown-mask" => unknown_mask,
    "failures.poll-of-nothing" => poll_of_nothing,
    "handles.leaked" => leaked,
    "handles.given-back" => given_back,
}
