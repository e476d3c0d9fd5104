//! An answer with a shape: the generation is held to a JSON schema, and read as a value of the program's own type.

use inferlet::stop_condition::max_len;
use inferlet::{get_auto_model, Constraint, Error, Result, Sampler};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Input {
    #[serde(default = "some_review")]
    review: String,
}

fn some_review() -> String {
    "The lemon tarts were great, and they came fast.".to_owned()
}

#[derive(Debug, Serialize, Deserialize)]
struct Opinion {
    stars: u8,
    verdict: String,
}

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "stars": {"enum": [1, 2, 3, 4, 5]},
        "verdict": {"enum": ["bad", "good", "great"]}
    },
    "required": ["stars", "verdict"],
    "additionalProperties": false
}"#;

#[inferlet::main]
async fn main(input: Input) -> Result<Opinion> {
    let mut context = get_auto_model().create_context();
    context.fill_user(&format!("Say as JSON what this review thinks: {}", input.review));
    let constraint = Constraint::json_schema(SCHEMA);
    let draft = context.generate(Sampler::greedy(), max_len(40)).constraint(constraint).draft().await?;
    if !draft.is_whole() {
        return Err(Error::new(format!("the answer was cut off: {}", draft.text)));
    }
    draft.json()
}
