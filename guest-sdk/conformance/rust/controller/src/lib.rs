//! The controller of the suite: its config says what it does.

use std::time::Duration;

use inferlet::controller::{Branch, Controller, Decision, Sequence, Splice, Start, StepInfo, Wait};
use inferlet::log::info;
use inferlet::{get_auto_model, Result};

#[derive(Clone)]
struct Steered {
    what: String,
    calls: usize,
}

fn forced(token: u32) -> Branch {
    Branch::force([token], 0)
}

#[inferlet::controller]
impl Controller for Steered {
    fn start(config: &str, prompt: &[u32]) -> Result<Start<Self>> {
        let config: serde_json::Value = serde_json::from_str(config)?;
        let what = config["do"].as_str().unwrap_or_default().to_owned();
        info(format!("start {what}, {} tokens", prompt.len()));
        if what == "fail-at-start" {
            return Err("the reason is seven é".into());
        }
        let prompt = if what == "prompt" { Some(get_auto_model().tokenize("new prompt é")?) } else { None };
        Ok(Start { controller: Self { what, calls: 0 }, prompt, logprobs: Some(1) })
    }

    fn step(&mut self, sequence: &Sequence, step: &StepInfo) -> Result<Decision> {
        self.calls += 1;
        let number = sequence.generated().len();
        Ok(match self.what.as_str() {
            "stop" if number >= 3 => Decision::Stop,
            "allow" if number < 3 => Decision::Branch(Branch { allow: Some(vec![120, 121]), ..Branch::default() }),
            "allow" => Decision::Stop,
            "force" if number == 0 => Decision::Branch(Branch::force([72, 195, 169, 33], 0)),
            "force" if number == 4 && self.calls == 2 => Decision::Branch(Branch::force([63], 1)),
            "force" => Decision::Stop,
            "splice" if number < 4 => Decision::Branch(Branch {
                splices: vec![Splice { when_sampled: vec![98], backtrack: 1, tokens: vec![88, 89] }],
                bias: vec![(65, -1.5)],
                temperature: Some(0.5),
                ..Branch::default()
            }),
            "splice" => Decision::Stop,
            "fork" if number == 0 && sequence.id == 0 => Decision::Fork(vec![forced(49), forced(50), forced(51)]),
            "fork" => {
                if !step.siblings.is_empty() {
                    info(format!("sequence {} of {:?}", sequence.id, step.siblings));
                }
                if number >= 2 + sequence.id as usize {
                    Decision::Stop
                } else {
                    Decision::GoOn
                }
            }
            "wait" if self.calls == 1 => {
                Decision::Wait(Wait { variable: Some(("go".to_owned(), 0)), time: Some(Duration::from_secs(3600)) })
            }
            "wait" if number >= 2 => Decision::Stop,
            "wait-for-ever" => Decision::Wait(Wait { variable: Some(("never".to_owned(), 0)), time: None }),
            "refused" => match &step.refused {
                Some(error) => {
                    info(format!("{}: {}", error.code, error.message));
                    Decision::Stop
                }
                None => Decision::Branch(Branch::force([], 1000)),
            },
            "fail-later" if number >= 2 => return Err("the reason is seven é".into()),
            _ => Decision::GoOn,
        })
    }

    fn end(&mut self, sequence: &Sequence, step: &StepInfo) {
        let reason = step.finish_reason.clone().unwrap_or_default();
        info(format!("sequence {} ends: {reason}", sequence.id));
    }
}
