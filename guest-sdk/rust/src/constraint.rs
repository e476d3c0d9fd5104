//! What a generation may write.

use std::future::Future;
use std::ops::{BitAnd, BitOr};
use std::pin::Pin;

use crate::error::{Named, Result};
use crate::event::OwnedEvent;
use crate::mask::Mask;
use crate::model::Model;
use crate::wit::constraints;

/// What a generation may write. `one & other` is what both allow, token by token, `one | other` what either does; up to 8
/// can be put together.
///
/// It is compiled when a generation starts with it, and kept for the tenant, so it does not matter how often it is made.
#[derive(Clone, Debug)]
pub struct Constraint {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    JsonSchema(String),
    Regex(String),
    Lark(String),
    Choices(Vec<String>),
    Substring(String),
    Tokens(Vec<u32>),
    Mask(Mask),
    AllOf(Vec<Constraint>),
    AnyOf(Vec<Constraint>),
}

impl Constraint {
    /// JSON of a schema, which is JSON itself. `draft.json()` gives the value.
    pub fn json_schema(schema: impl Into<String>) -> Self {
        Self { kind: Kind::JsonSchema(schema.into()) }
    }

    /// A text that matches as a whole, in the syntax of the crate `regex`.
    pub fn regex(pattern: impl Into<String>) -> Self {
        Self { kind: Kind::Regex(pattern.into()) }
    }

    /// A text of a context-free grammar, in llguidance's variant of Lark.
    pub fn lark(grammar: impl Into<String>) -> Self {
        Self { kind: Kind::Lark(grammar.into()) }
    }

    /// One of several texts.
    pub fn choices<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self { kind: Kind::Choices(texts.into_iter().map(Into::into).collect()) }
    }

    /// A quotation: a run of whole words of a text.
    pub fn substring(text: impl Into<String>) -> Self {
        Self { kind: Kind::Substring(text.into()) }
    }

    /// Any number of these tokens.
    pub fn tokens(tokens: impl Into<Vec<u32>>) -> Self {
        Self { kind: Kind::Tokens(tokens.into()) }
    }

    /// Any number of the tokens of a mask.
    pub fn mask(mask: &Mask) -> Self {
        Self { kind: Kind::Mask(mask.clone()) }
    }

    /// Compiles it on the host, for the SDK's own `call`.
    pub(crate) fn compile<'a>(&'a self, model: &'a Model, call: &'static str) -> Compiling<'a> {
        Box::pin(async move {
            let handle = match &self.kind {
                Kind::JsonSchema(schema) => constraints::Constraint::json_schema(model.handle(), schema),
                Kind::Regex(pattern) => constraints::Constraint::regex(model.handle(), pattern),
                Kind::Lark(grammar) => constraints::Constraint::lark(model.handle(), grammar),
                Kind::Choices(texts) => constraints::Constraint::choices(model.handle(), texts),
                Kind::Substring(text) => constraints::Constraint::substring(model.handle(), text),
                Kind::Tokens(tokens) => constraints::Constraint::tokens(model.handle(), tokens),
                Kind::Mask(mask) => constraints::Constraint::of_mask(mask.handle()),
                Kind::AllOf(parts) => {
                    let parts = compile_all(parts, model, call).await?;
                    constraints::Constraint::all_of(&ids(&parts))
                }
                Kind::AnyOf(parts) => {
                    let parts = compile_all(parts, model, call).await?;
                    constraints::Constraint::any_of(&ids(&parts))
                }
            };
            let handle = handle.named(call)?;
            OwnedEvent::new(handle.ready()).finish(call).await?;
            Ok(handle)
        })
    }
}

type Compiling<'a> = Pin<Box<dyn Future<Output = Result<constraints::Constraint>> + 'a>>;

async fn compile_all(parts: &[Constraint], model: &Model, call: &'static str) -> Result<Vec<constraints::Constraint>> {
    let mut compiled = Vec::new();
    for part in parts {
        compiled.push(part.compile(model, call).await?);
    }
    Ok(compiled)
}

fn ids(parts: &[constraints::Constraint]) -> Vec<u32> {
    parts.iter().map(|part| part.id()).collect()
}

impl BitAnd for Constraint {
    type Output = Constraint;

    fn bitand(self, other: Constraint) -> Constraint {
        let mut parts = Vec::new();
        for each in [self, other] {
            match each.kind {
                Kind::AllOf(its_parts) => parts.extend(its_parts),
                _ => parts.push(each),
            }
        }
        Constraint { kind: Kind::AllOf(parts) }
    }
}

impl BitOr for Constraint {
    type Output = Constraint;

    fn bitor(self, other: Constraint) -> Constraint {
        let mut parts = Vec::new();
        for each in [self, other] {
            match each.kind {
                Kind::AnyOf(its_parts) => parts.extend(its_parts),
                _ => parts.push(each),
            }
        }
        Constraint { kind: Kind::AnyOf(parts) }
    }
}
