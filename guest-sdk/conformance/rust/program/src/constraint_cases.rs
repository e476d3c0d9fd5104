//! Constraints, masks and matchers. On the tiny model they are what llguidance says; its weights do not matter.

use inferlet::stop_condition::max_len;
use inferlet::wit::{constraints, events};
use inferlet::{get_auto_model, Constraint, Draft, Mask, Matcher, Result, Sampler, StopCondition};

use crate::common::{filled, is_ready, raw_model};
use crate::transcript::Transcript;
use crate::{cases, say};

async fn constrained(text: &str, constraint: Constraint, stop: StopCondition) -> Result<Draft> {
    filled(text).generate(Sampler::greedy(), stop).constraint(constraint).draft().await
}

async fn attempt(t: &mut Transcript, label: &str, constraint: Constraint) {
    t.attempt(label, constrained("x", constraint, max_len(4)).await);
}

/// What a generation under the constraint writes, which leaves no choice.
async fn say_generated(t: &mut Transcript, label: &str, constraint: Constraint) {
    let draft = constrained("Once", constraint, max_len(60)).await.unwrap();
    say!(t, label, draft.text, draft.finish_reason);
}

async fn json_schema(t: &mut Transcript) {
    say_generated(t, "forced", Constraint::json_schema(r#"{"const": {"a": [1, true], "b": null}}"#)).await;
    attempt(t, "not JSON", Constraint::json_schema("{")).await;
    attempt(t, "no such type", Constraint::json_schema(r#"{"type": "tart"}"#)).await;
}

async fn regex(t: &mut Transcript) {
    say_generated(t, "forced", Constraint::regex("The [q]uick é😀")).await;
    attempt(t, "not closed", Constraint::regex("(")).await;
    attempt(t, "empty", Constraint::regex("")).await;
}

async fn lark(t: &mut Transcript) {
    say_generated(t, "forced", Constraint::lark("start: \"one\" \" \" two\ntwo: \"two\"")).await;
    attempt(t, "no start", Constraint::lark("other: \"x\"")).await;
}

async fn choices(t: &mut Transcript) {
    say_generated(t, "forced", Constraint::choices(["only this one"])).await;
    attempt(t, "none", Constraint::choices(Vec::<String>::new())).await;
    attempt(t, "an empty one", Constraint::choices([""])).await;
}

async fn substring(t: &mut Transcript) {
    let model = get_auto_model();
    let mut matcher = Matcher::begin(&model, &Constraint::substring("one two three")).await.unwrap();
    matcher.advance(&model.tokenize("two th").unwrap()).await.unwrap();
    let place = matcher.place().unwrap().clone();
    say!(t, "forced", model.detokenize(&place.forced).unwrap(), place.may_end);
    matcher.advance(&place.forced).await.unwrap();
    let place = matcher.place().unwrap();
    say!(t, "complete", place.may_end, place.is_complete);
}

async fn tokens(t: &mut Transcript) {
    let draft = constrained("Once", Constraint::tokens([65]), max_len(4)).await.unwrap();
    say!(t, "only these", draft.tokens, draft.finish_reason);
    attempt(t, "none", Constraint::tokens([])).await;
    attempt(t, "out of range", Constraint::tokens([u32::MAX])).await;
}

async fn of_mask(t: &mut Transcript) {
    let model = get_auto_model();
    let constraint = Constraint::mask(&Mask::of(&model, &[66]).unwrap());
    let draft = constrained("Once", constraint, max_len(4)).await.unwrap();
    say!(t, "only these", draft.tokens, draft.finish_reason);
    attempt(t, "an empty mask", Constraint::mask(&Mask::of(&model, &[]).unwrap())).await;
}

async fn all_of(t: &mut Transcript) {
    let both = Constraint::regex("[a-c]+d") & Constraint::regex("[b-z]+") & Constraint::choices(["abd", "bbd"]);
    say_generated(t, "all three", both).await;
    attempt(t, "nothing", Constraint::regex("a") & Constraint::regex("b")).await;
    let nine = (1..9).fold(Constraint::regex("a0"), |nine, i| nine & Constraint::regex(format!("a{i}")));
    attempt(t, "nine", nine).await;
}

async fn any_of(t: &mut Transcript) {
    let model = get_auto_model();
    let first = |text: &str| model.tokenize(text).unwrap()[0];
    let either = Constraint::choices(["one"]) | Constraint::choices(["two"]);
    let mut matcher = Matcher::begin(&model, &either).await.unwrap();
    let mask = matcher.mask().unwrap();
    say!(t, "allowed", ["o", "t", "x"].map(|text| mask.contains(first(text)).unwrap()));
    matcher.advance(&[first("t")]).await.unwrap();
    say!(t, "forced", model.detokenize(&matcher.place().unwrap().forced).unwrap());
}

async fn ready(t: &mut Transcript) {
    let model = raw_model();
    {
        let constraint = constraints::Constraint::regex(&model, "a+").unwrap();
        let event = constraint.ready();
        say!(t, "the same at every call", constraint.ready() == event);
        say!(t, "ready", is_ready(event));
        t.attempt("outcome", events::outcome(event));
    }
    let constraint = constraints::Constraint::regex(&model, "(").unwrap();
    let event = constraint.ready();
    is_ready(event);
    t.attempt("an error", events::outcome(event));
}

async fn constraint_id(t: &mut Transcript) {
    let model = raw_model();
    let constraint = constraints::Constraint::choices(&model, &["only this".to_owned()]).unwrap();
    let other = constraints::Constraint::choices(&model, &["another".to_owned()]).unwrap();
    say!(t, "their own", constraint.id() != other.id());
    say!(t, "the same at every call", constraint.id() == constraint.id());
    t.attempt("not compiled yet", constraints::Constraint::all_of(&[constraint.id()]));
    is_ready(constraint.ready());
    let alone = constraints::Constraint::all_of(&[constraint.id()]).unwrap();
    is_ready(alone.ready());
    t.attempt("of one part", events::outcome(alone.ready()));
    t.attempt("of no part", constraints::Constraint::any_of(&[]));
}

fn mask_of(tokens: &[u32]) -> Mask {
    Mask::of(&get_auto_model(), tokens).unwrap()
}

fn has<const N: usize>(mask: &Mask, tokens: [u32; N]) -> [bool; N] {
    tokens.map(|token| mask.contains(token).unwrap())
}

async fn mask_tokens(t: &mut Transcript) {
    say!(t, "empty", mask_of(&[]).len());
    let mask = mask_of(&[0, 257, 65, 65]);
    let [has_65, has_66] = has(&mask, [65, 66]);
    say!(t, "three", mask.len(), has_65, has_66);
    t.attempt("out of range", Mask::of(&get_auto_model(), &[258]));
}

async fn mask_words(t: &mut Transcript) {
    let model = raw_model();
    let mask = constraints::Mask::words(&model, &[0x8000_0000_0000_0001, 0, 0, u64::MAX, 2]).unwrap();
    say!(t, "count", mask.count());
    let some = [0, 1, 62, 63, 64, 191, 192, 255, 256, 257].map(|token| mask.allows(token).unwrap());
    say!(t, "some", some);
    t.attempt("too few", constraints::Mask::words(&model, &[1]));
    t.attempt("beyond the vocabulary", constraints::Mask::words(&model, &[0, 0, 0, 0, 4]));
    let bytes_with_a = Mask::filter(&get_auto_model(), |text| text == b"a").unwrap();
    say!(t, "by their bytes", bytes_with_a.len(), bytes_with_a.contains(97).unwrap());
}

async fn mask_all(t: &mut Transcript) {
    let mask = Mask::all(&get_auto_model()).unwrap();
    say!(t, "all", mask.len(), mask.contains(0).unwrap(), mask.contains(257).unwrap());
}

fn raw_mask(tokens: &[u32]) -> constraints::Mask {
    constraints::Mask::tokens(&raw_model(), tokens).unwrap()
}

async fn mask_intersection(t: &mut Transcript) {
    let low = mask_of(&(0..100).collect::<Vec<_>>());
    let high = mask_of(&(90..258).collect::<Vec<_>>());
    let both = &low & &high;
    let [a, b, c, d] = has(&both, [89, 90, 99, 100]);
    say!(t, "both", both.len(), a, b, c, d);
    let (one, two, three) = (raw_mask(&[1, 2, 3]), raw_mask(&[2, 3]), raw_mask(&[3, 4]));
    say!(t, "three", one.intersection(&[two.id(), three.id()]).unwrap().count());
    say!(t, "with nothing", one.intersection(&[]).unwrap().count());
    t.attempt("65 of them", one.intersection(&[two.id(); 65]));
}

async fn mask_union(t: &mut Transcript) {
    let either = &mask_of(&[1, 2]) | &mask_of(&[2, 3]);
    say!(t, "either", either.len(), either.contains(3).unwrap());
    let (one, two, three) = (raw_mask(&[1]), raw_mask(&[2]), raw_mask(&[3]));
    say!(t, "three", one.union(&[two.id(), three.id()]).unwrap().count());
    t.attempt("65 of them", one.union(&[two.id(); 65]));
}

async fn mask_complement(t: &mut Transcript) {
    let others = !&mask_of(&[0, 257]);
    let [a, b] = has(&others, [0, 1]);
    say!(t, "others", others.len(), a, b);
    say!(t, "less", (&Mask::all(&get_auto_model()).unwrap() - &mask_of(&[5])).len());
}

async fn mask_restrict(t: &mut Transcript) {
    let mask = mask_of(&[1, 2, 3]);
    let some = mask.restrict(&[2, 3, 4]).unwrap();
    let [a, b, c] = has(&some, [1, 2, 4]);
    say!(t, "those", some.len(), a, b, c);
    t.attempt("out of range", some.restrict(&[258]));
}

async fn mask_count(t: &mut Transcript) {
    let all = Mask::all(&get_auto_model()).unwrap();
    say!(t, "counts", mask_of(&[]).len(), mask_of(&[7]).len(), all.len());
}

async fn mask_allows(t: &mut Transcript) {
    let mask = raw_mask(&[7]);
    say!(t, "seven, eight", mask.allows(7).unwrap(), mask.allows(8).unwrap());
    t.attempt("out of range", mask.allows(258));
}

async fn mask_id(t: &mut Transcript) {
    let (one, two) = (raw_mask(&[7]), raw_mask(&[7]));
    say!(t, "their own", one.id() != two.id());
    say!(t, "the same at every call", one.id() == one.id());
}

async fn masks_by_bytes(t: &mut Transcript) {
    let model = get_auto_model();
    let digits = Mask::filter(&model, |text| !text.is_empty() && text.iter().all(u8::is_ascii_digit)).unwrap();
    let odd = Mask::filter(&model, |text| text.len() != 1 || text[0] % 2 == 1).unwrap();
    let (both, either, less, others) = (&digits & &odd, &digits | &odd, &odd - &digits, !&odd);
    say!(t, "counts", digits.len(), odd.len(), both.len(), either.len(), less.len(), others.len());
}

async fn masked(text: &str, tokens: &[u32], constraint: Option<Constraint>, most: usize) -> Result<Draft> {
    let mut context = filled(text);
    let mask = mask_of(tokens);
    let running = context.generate(Sampler::greedy(), max_len(most)).mask(&mask);
    match constraint {
        Some(constraint) => running.constraint(constraint).draft().await,
        None => running.draft().await,
    }
}

async fn masks_in_use(t: &mut Transcript) {
    say!(t, "one token", masked("Once", &[67], None, 3).await.unwrap().tokens);
    t.attempt("an empty mask", masked("x", &[], None, 1).await);
    let both = masked("Once", &[67, 68], Some(Constraint::tokens([68, 69])), 3).await;
    say!(t, "with a constraint", both.unwrap().tokens);
    t.attempt("which leave nothing", masked("x", &[67], Some(Constraint::choices(["D"])), 3).await);
}

async fn begun(pattern: Constraint) -> Matcher {
    Matcher::begin(&get_auto_model(), &pattern).await.unwrap()
}

fn tokenized(text: &str) -> Vec<u32> {
    get_auto_model().tokenize(text).unwrap()
}

fn forced(matcher: &Matcher) -> String {
    get_auto_model().detokenize(&matcher.place().unwrap().forced).unwrap()
}

async fn begin(t: &mut Transcript) {
    let matcher = begun(Constraint::regex("The (quick|slow) fox")).await;
    say!(t, "forced", forced(&matcher));
    let place = matcher.place().unwrap();
    say!(t, "place", place.may_end, place.is_complete, place.problem);
    t.attempt("a constraint with an error", Matcher::begin(&get_auto_model(), &Constraint::regex("(")).await);
}

async fn matcher_ready(t: &mut Transcript) {
    let constraint = constraints::Constraint::regex(&raw_model(), "ab").unwrap();
    t.attempt("not compiled yet", constraints::Matcher::begin(&constraint));
    is_ready(constraint.ready());
    let matcher = constraints::Matcher::begin(&constraint).unwrap();
    let event = matcher.ready();
    say!(t, "the same at every call", matcher.ready() == event);
    t.attempt_shown("too early", matcher.place().map(|place| place.may_end));
    say!(t, "ready", is_ready(event));
    t.attempt_shown("then", matcher.place().map(|place| place.may_end));
}

async fn place(t: &mut Transcript) {
    let mut matcher = begun(Constraint::regex("ab?")).await;
    for (label, text) in [("beginning", ""), ("may end", "a"), ("complete", "b")] {
        if !text.is_empty() {
            matcher.advance(&tokenized(text)).await.unwrap();
        }
        let place = matcher.place().unwrap();
        say!(t, label, place.forced, place.may_end, place.is_complete, place.problem);
    }
    matcher.advance(&tokenized("c")).await.unwrap();
    let place = matcher.place().unwrap();
    say!(t, "a problem", place.problem.is_some(), place.may_end);
}

async fn matcher_mask(t: &mut Transcript) {
    let mut matcher = begun(Constraint::choices(["x", "y"])).await;
    let mask = matcher.mask().unwrap();
    let [x, z] = has(&mask, [tokenized("x")[0], tokenized("z")[0]]);
    say!(t, "two", x, z);
    matcher.advance(&tokenized("x")).await.unwrap();
    let mask = matcher.mask().unwrap();
    let ends: Vec<bool> = get_auto_model().eos_tokens().iter().map(|token| mask.contains(*token).unwrap()).collect();
    say!(t, "the end", ends);
}

async fn advance(t: &mut Transcript) {
    let mut matcher = begun(Constraint::regex("[ab]*")).await;
    t.attempt("none", matcher.advance(&[]).await);
    t.attempt("many", matcher.advance(&tokenized("ab").repeat(20)).await);
    let place = matcher.place().unwrap();
    say!(t, "place", place.may_end, place.problem);
    t.attempt("what is not allowed", matcher.advance(&tokenized("z")).await);
    say!(t, "a problem", matcher.place().unwrap().problem.is_some());
    t.attempt("out of range", matcher.advance(&[u32::MAX]).await);
}

async fn rollback(t: &mut Transcript) {
    let mut matcher = begun(Constraint::regex("abc")).await;
    matcher.advance(&[tokenized("a"), tokenized("z")].concat()).await.unwrap();
    say!(t, "a problem", matcher.place().unwrap().problem.is_some());
    t.attempt("one back", matcher.rollback(1).await);
    say!(t, "no problem", matcher.place().unwrap().problem, forced(&matcher));
    t.attempt("too many", matcher.rollback(2).await);
    t.attempt("far too many", matcher.rollback(u32::MAX).await);
    t.attempt("none", matcher.rollback(0).await);
    say!(t, "where it was", forced(&matcher));
}

async fn matcher_fork(t: &mut Transcript) {
    let mut matcher = begun(Constraint::choices(["ab", "cd"])).await;
    let mut fork = matcher.fork().await.unwrap();
    fork.advance(&tokenized("a")).await.unwrap();
    matcher.advance(&tokenized("c")).await.unwrap();
    say!(t, "their own ways", forced(&fork), forced(&matcher));
    fork.rollback(1).await.unwrap();
    say!(t, "back", fork.mask().unwrap().contains(tokenized("c")[0]).unwrap());
}

async fn many_masks(t: &mut Transcript) {
    let model = get_auto_model();
    let kept: Vec<Mask> = (0..1024).map(|i| Mask::of(&model, &[i % 258]).unwrap()).collect();
    t.attempt("one more", Mask::of(&model, &[1]));
    drop(kept);
    t.attempt_shown("with room", Mask::of(&model, &[1]).map(|mask| mask.len()));
}

cases! {
    "constraints.constraint.json-schema" => json_schema,
    "constraints.constraint.regex" => regex,
    "constraints.constraint.lark" => lark,
    "constraints.constraint.choices" => choices,
    "constraints.constraint.substring" => substring,
    "constraints.constraint.tokens" => tokens,
    "constraints.constraint.of-mask" => of_mask,
    "constraints.constraint.all-of" => all_of,
    "constraints.constraint.any-of" => any_of,
    "constraints.constraint.ready" => ready,
    "constraints.constraint.id" => constraint_id,
    "constraints.mask.tokens" => mask_tokens,
    "constraints.mask.words" => mask_words,
    "constraints.mask.all" => mask_all,
    "constraints.mask.intersection" => mask_intersection,
    "constraints.mask.union" => mask_union,
    "constraints.mask.complement" => mask_complement,
    "constraints.mask.restrict" => mask_restrict,
    "constraints.mask.count" => mask_count,
    "constraints.mask.allows" => mask_allows,
    "constraints.mask.id" => mask_id,
    "constraints.masks-by-bytes" => masks_by_bytes,
    "constraints.masks-in-use" => masks_in_use,
    "constraints.matcher.begin" => begin,
    "constraints.matcher.ready" => matcher_ready,
    "constraints.matcher.place" => place,
    "constraints.matcher.mask" => matcher_mask,
    "constraints.matcher.advance" => advance,
    "constraints.matcher.rollback" => rollback,
    "constraints.matcher.fork" => matcher_fork,
    "constraints.many-masks" => many_masks,
}
