//! On models that compute: what the program in Python tells is expected.

use futures::future::join_all;
use futures::join;
use inferlet::stop_condition::max_len;
use inferlet::{get_auto_model, Ask, Constraint, Context, PassRequest, Sampler, Speculation, Splice, Step, StopCondition};

use crate::common::filled;
use crate::transcript::Transcript;
use crate::{cases, say};

const PROMPT: &str = "The cat sat on the mat. The cat sat on the";

async fn greedy(t: &mut Transcript) {
    let mut context = filled(PROMPT);
    let draft = context.generate(Sampler::greedy(), max_len(24)).logprobs(2).draft().await.unwrap();
    say!(t, "tokens", draft.tokens, draft.text);
    for each in &draft.logprobs[..draft.logprobs.len().min(4)] {
        let tokens: Vec<u32> = each.top.iter().map(|other| other.token).collect();
        say!(t, "log-probabilities", each.chosen.log_probability, tokens);
    }
}

async fn samplers(t: &mut Transcript) {
    let context = filled(PROMPT);
    let samplers = [
        Sampler::temperature(1.3).with_seed(0),
        Sampler::top_p(0.8, 0.95).with_seed(u64::MAX),
        Sampler::top_k(40).with_temperature(0.7).with_seed(9007199254740993),
        Sampler::min_p(0.05).with_temperature(1.1).with_seed(3),
        Sampler::temperature(1.0)
            .with_seed(5)
            .with_repetition_penalty(1.3)
            .with_presence_penalty(0.4)
            .with_frequency_penalty(0.1),
        Sampler::temperature(0.0).with_bias(5, 100.0),
        Sampler::temperature(1.0),
    ];
    let mut forks: Vec<Context> = samplers.iter().map(|_| context.fork()).collect();
    let running = forks.iter_mut().zip(samplers).map(|(fork, sampler)| fork.generate(sampler, max_len(16)).draft());
    for draft in join_all(running).await {
        say!(t, "tokens", draft.unwrap().tokens);
    }
}

async fn forward(t: &mut Transcript) {
    let model = get_auto_model();
    let first = |text: &str| model.tokenize(text).unwrap()[0];
    let (a, b, c) = (first("abc"), first(" dog"), first(" roof"));
    let mut context = filled(PROMPT);
    let request = (0..4).fold(PassRequest::new().parents([0, 0, 2]).logprobs(), |request, row| {
        request.ask(Ask::row(row).top(3).given([b]).entropy())
    });
    let found = context.forward(&[a, b, c], request).await.unwrap();
    say!(t, "log-probabilities", found.logprobs);
    for row in &found.rows {
        let tokens: Vec<u32> = row.top.iter().map(|each| each.token).collect();
        let numbers: Vec<f32> = row.top.iter().map(|each| each.log_probability).collect();
        say!(t, "row", tokens, numbers, row.given, row.entropy);
    }
    found.commit(&[2, 3]).unwrap();
    say!(t, "length", context.len());
    {
        let sampled = Ask::row(1).sample(Sampler::temperature(1.0).with_seed(11), 0);
        let request = PassRequest::new().ask(Ask::row(0).logits()).ask(sampled);
        let found = context.forward(&[a], request).await.unwrap();
        let logits = &found.rows[0].logits;
        say!(t, "logits", logits.len(), logits[..3], logits[logits.len() - 3..]);
        let sampled = found.rows[1].sampled.as_ref().unwrap();
        say!(t, "sampled", sampled.token, sampled.log_probability);
    }
    say!(t, "scores", context.score(&[" the cat", " a dog", " the cow"]).await.unwrap());
}

async fn stepping(t: &mut Transcript) {
    let mut context = filled(PROMPT);
    let request = context.steps(Sampler::temperature(0.9).with_seed(17), max_len(20));
    let mut steps = request.constraint(Constraint::regex("[ -~]{1,60}")).start().await.unwrap();
    for _ in 0..5 {
        steps.next().await.unwrap();
    }
    let mut child = steps.fork(Some(23)).unwrap();
    let and = Splice { when_sampled: vec![], backtrack: 1, tokens: get_auto_model().tokenize(" and").unwrap() };
    child.next_with(&Step { splices: vec![and], ..Step::default() }).await.unwrap();
    child.next_with(&Step { bias: vec![(10, 3.0)], ..Step::default() }).await.unwrap();
    steps.backtrack(2, &[]).await.unwrap();
    steps.next_with(&Step { temperature: Some(0.0), ..Step::default() }).await.unwrap();
    say!(t, "tokens", steps.tokens(), child.tokens());
}

async fn constraints(t: &mut Transcript) {
    let context = filled(PROMPT);
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["n"]}"#;
    let either =
        Constraint::regex("[a-m]{2,5}") & Constraint::regex("[c-z]+") | Constraint::choices(["zzz"]);
    let mut forks = [context.fork(), context.fork(), context.fork()];
    let [first, second, third] = &mut forks;
    let drafts = join!(
        first.generate(Sampler::greedy(), max_len(40)).constraint(Constraint::json_schema(schema)).draft(),
        second.generate(Sampler::greedy(), max_len(8)).constraint(either).draft(),
        third
            .generate(Sampler::temperature(1.0).with_seed(2), StopCondition::default())
            .constraint(Constraint::choices(["one", "two", "three"]))
            .draft()
    );
    for draft in [drafts.0, drafts.1, drafts.2] {
        let draft = draft.unwrap();
        say!(t, "draft", draft.text, draft.tokens, draft.finish_reason, draft.usage.forced_tokens);
    }
}

async fn speculation(t: &mut Transcript) {
    let context = filled(PROMPT);
    let plain = context.fork().generate(Sampler::greedy(), max_len(16)).draft().await.unwrap();
    let mut fork = context.fork();
    let guessed = fork.generate(Sampler::greedy(), max_len(16)).speculation(Speculation::new().expected(PROMPT));
    let guessed = guessed.draft().await.unwrap();
    say!(t, "the same", guessed.tokens == plain.tokens);
    say!(t, "tokens", guessed.tokens);
}

async fn eviction(t: &mut Transcript) {
    let mut context = filled(PROMPT);
    context.evict(2, 5).await.unwrap();
    let draft = context.generate(Sampler::greedy(), max_len(12)).draft().await.unwrap();
    say!(t, "tokens", draft.tokens, context.len(), context.positions());
    context.save("evicted", None, true).await.unwrap();
    let mut opened = Context::open(&get_auto_model(), "evicted").await.unwrap();
    let (again, opened_again) = join!(
        context.generate(Sampler::greedy(), max_len(6)).draft(),
        opened.generate(Sampler::greedy(), max_len(6)).draft()
    );
    let (again, opened_again) = (again.unwrap(), opened_again.unwrap());
    say!(t, "goes on", again.tokens);
    say!(t, "the same", again.tokens == opened_again.tokens);
}

cases! {
    "model.greedy" => greedy,
    "model.samplers" => samplers,
    "model.forward" => forward,
    "model.stepping" => stepping,
    "model.constraints" => constraints,
    "model.speculation" => speculation,
    "model.eviction" => eviction,
}
