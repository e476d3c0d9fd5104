//! Variables, and forks that race for them.

use std::time::Duration;

use futures::join;
use inferlet::wit::{events, store};
use inferlet::{sleep, variables, Context};

use crate::common::{filled, generated};
use crate::transcript::Transcript;
use crate::{cases, say};

fn say_variable(t: &mut Transcript, label: &str, name: &str) {
    match variables::get(name) {
        Some(found) => say!(t, label, found.value, found.version),
        None => say!(t, label, None::<u64>),
    }
}

async fn get(t: &mut Transcript) {
    say_variable(t, "not there", "x");
    variables::set("x", "").unwrap();
    say_variable(t, "empty", "x");
    say_variable(t, "no name", "");
}

async fn set(t: &mut Transcript) {
    t.attempt_shown("first", variables::set("é", "one"));
    t.attempt_shown("again", variables::set("é", "two 😀\n"));
    say_variable(t, "now", "é");
    t.attempt_shown("no name", variables::set("", "x"));
    t.attempt_shown("longest name", variables::set(&"n".repeat(256), "x"));
    t.attempt_shown("too long a name", variables::set(&"é".repeat(129), "x"));
    t.attempt_shown("too large", variables::set("x", &"x".repeat(1 << 20)));
    say_variable(t, "not written", "x");
}

async fn append(t: &mut Transcript) {
    t.attempt_shown("new", variables::append("x", "one"));
    t.attempt_shown("more", variables::append("x", " two"));
    t.attempt_shown("nothing", variables::append("x", ""));
    say_variable(t, "now", "x");
    t.attempt_shown("too large", variables::append("x", &"x".repeat(1 << 20)));
}

async fn compare_and_swap(t: &mut Transcript) {
    for (label, name, value, version) in [
        ("not there yet", "x", "a", 0),
        ("there by now", "x", "b", 0),
        ("next", "x", "c", 1),
        ("a version of 2^64 - 1", "x", "d", u64::MAX),
        ("a version of 2^53 + 1", "x", "e", 9007199254740993),
        ("not there", "y", "a", 1),
    ] {
        let swap = variables::compare_and_swap(name, value, version).unwrap();
        say!(t, label, swap.written, swap.now.value, swap.now.version);
    }
    t.attempt("no name", variables::compare_and_swap("", "x", 0));
}

async fn list_variables(t: &mut Transcript) {
    say!(t, "none", variables::versions().len());
    for name in ["b", "a", "c", "a"] {
        variables::set(name, name).unwrap();
    }
    for each in variables::versions() {
        say!(t, "variable", each.name, each.version);
    }
}

async fn variable_above(t: &mut Transcript) {
    variables::set("x", "one").unwrap();
    let found = variables::wait("x", 0).await.unwrap();
    say!(t, "there already", found.value, found.version);
    let write = async {
        sleep(Duration::from_millis(2)).await;
        variables::set("x", "two").unwrap();
        variables::set("x", "three").unwrap();
    };
    let (found, ()) = join!(variables::wait("x", 2), write);
    let found = found.unwrap();
    say!(t, "above two", found.value, found.version);
    let event = store::variable_above("x", u64::MAX).unwrap();
    say!(t, "above 2^64 - 1", events::poll(&[event], Some(1_000_000)));
    events::drop_event(event);
    t.attempt("no name", variables::wait("", 0).await);
}

async fn many(t: &mut Transcript) {
    for i in 0..1024 {
        variables::set(&format!("v{i}"), &i.to_string()).unwrap();
    }
    t.attempt_shown("one more", variables::set("more", "x"));
    say!(t, "how many", variables::versions().len());
    say!(t, "the last", variables::get("v1023").unwrap().value);
}

async fn answer(mut context: Context, name: &str) {
    let draft = generated(&mut context).await.unwrap();
    let begins: String = draft.text.chars().take(5).collect();
    let swap = variables::compare_and_swap("winner", &format!("{name}: {begins}"), 0).unwrap();
    variables::append("log", &format!("{name} {};", if swap.written { "won" } else { "lost" })).unwrap();
}

async fn race(t: &mut Transcript) {
    let winner = async { variables::wait("winner", 0).await.unwrap().value };
    let (_, _, winner) = join!(answer(filled("short"), "short"), answer(filled("endless"), "long"), winner);
    say!(t, "winner", winner);
    say!(t, "log", variables::get("log").unwrap().value);
}

async fn play(mark: &str, turn: u64) {
    for version in (turn..200).step_by(2) {
        variables::wait("ball", version).await.unwrap();
        variables::append("ball", mark).unwrap();
    }
}

async fn relay(t: &mut Transcript) {
    variables::set("ball", "").unwrap();
    join!(play("x", 0), play("o", 1));
    let ball = variables::get("ball").unwrap();
    say!(t, "ball", ball.version, ball.value == "xo".repeat(100));
}

cases! {
    "store.get-variable" => get,
    "store.set-variable" => set,
    "store.append-variable" => append,
    "store.compare-and-swap-variable" => compare_and_swap,
    "store.list-variables" => list_variables,
    "store.variable-above" => variable_above,
    "store.many" => many,
    "store.race" => race,
    "store.relay" => relay,
}
