// Written by `make bindings` from wit/; do not edit.

//! What a generation may write: JSON of a schema, texts that match, one of several; and sets of tokens.
//!
//! A constraint is compiled on the host, and masks out every token that it does not allow; tokens that it leaves no choice
//! about are appended without being sampled. Masks and grammars stay on the host. A constraint begins with a generation:
//! it says nothing about what is in the context already. A model whose features do not have `constraints` has none, and
//! no matchers; masks it has.

use super::abi::{Abi, Area, Arena, Load, Store};
use super::models::Model;
use super::types::{Error, Event, Token};

/// One constraint, which any number of generations can follow, one after the other or at once. Compiling goes on after
/// the call: the text is checked then. Dropping it does not concern generations that have started with it.
///
/// The same constraint is compiled once for a tenant. What it may take is bounded, in time, memory and size of the text:
/// beyond that, its error is `quota-exceeded`.
#[derive(Debug)]
pub struct Constraint(u32);

impl Constraint {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// A JSON text that a JSON schema describes. It is written on one line, with a space after each comma and colon.
    /// Keywords that cannot be followed are an error.
    pub fn json_schema(model: &Model, schema: &str) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.json-schema"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), schema.as_ptr() as u32, schema.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// A text that matches a regular expression as a whole, in the syntax of Rust's regex.
    pub fn regex(model: &Model, pattern: &str) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.regex"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), pattern.as_ptr() as u32, pattern.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// A text of a context-free grammar in llguidance's variant of Lark; it begins with the rule `start`.
    pub fn lark(model: &Model, grammar: &str) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.lark"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), grammar.as_ptr() as u32, grammar.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// One of several texts.
    pub fn choices(model: &Model, texts: &[String]) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.choices"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = String::list(texts, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), list1 as u32, texts.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// A run of whole words out of a text, as they stand there: a quotation.
    pub fn substring(model: &Model, text: &str) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.substring"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), text.as_ptr() as u32, text.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Any number of tokens out of a set.
    pub fn tokens(model: &Model, allowed: &[Token]) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.tokens"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = Token::list(allowed, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), list1 as u32, allowed.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Any number of tokens out of a mask, which must not be empty.
    pub fn of_mask(mask: &Mask) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.of-mask"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(mask.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// What all of some compiled constraints of the run allow, by their ids. A token is allowed where each of them allows
    /// it, so it can come to a place where nothing is: that is an error of the generation. Put regular expressions into
    /// one lark terminal with `&` where that matters. At most 8 can be put together, parts of parts included.
    pub fn all_of(parts: &[u32]) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.all-of"]
            fn call(_: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = u32::list(parts, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(list1 as u32, parts.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// What any of some compiled constraints of the run allows, by their ids: at each place what those allow that have
    /// allowed everything before it.
    pub fn any_of(parts: &[u32]) -> Result<Constraint, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]constraint.any-of"]
            fn call(_: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = u32::list(parts, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(list1 as u32, parts.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The event that becomes ready when it is compiled, or cannot be: its outcome says why. The same at every call; it
    /// goes away with its outcome, or with the constraint.
    pub fn ready(&self) -> Event {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]constraint.ready"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// The number that `generation.options` takes.
    pub fn id(&self) -> u32 {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]constraint.id"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }
}

impl Drop for Constraint {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]constraint"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Constraint {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Constraint {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// A set of tokens, eos tokens like any other. It stays on the host, so it costs nothing to attach it to a generation, and
/// a microsecond or so to put it together with others. A run may hold 1,024 of them.
#[derive(Debug)]
pub struct Mask(u32);

impl Mask {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// These tokens.
    pub fn tokens(model: &Model, tokens: &[Token]) -> Result<Mask, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]mask.tokens"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = Token::list(tokens, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), list1 as u32, tokens.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The tokens whose bits are set: bit `t % 64` of word `t / 64` is that of token t. There must be as many words as the
    /// vocabulary needs, and no bits beyond it.
    pub fn words(model: &Model, words: &[u64]) -> Result<Mask, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]mask.words"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = u64::list(words, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), list1 as u32, words.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// All tokens of the vocabulary.
    pub fn all(model: &Model) -> Result<Mask, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]mask.all"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(model.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The tokens that this and all of these masks have, by their ids; at most 64 of them, here and below.
    pub fn intersection(&self, others: &[u32]) -> Result<Mask, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]mask.intersection"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = u32::list(others, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), list1 as u32, others.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The tokens that this or any of these masks has.
    pub fn union(&self, others: &[u32]) -> Result<Mask, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]mask.union"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = u32::list(others, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), list1 as u32, others.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The tokens that this one does not have.
    pub fn complement(&self) -> Result<Mask, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]mask.complement"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Those of these tokens that this one has.
    pub fn restrict(&self, tokens: &[Token]) -> Result<Mask, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]mask.restrict"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = Token::list(tokens, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), list1 as u32, tokens.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// How many tokens it has.
    pub fn count(&self) -> u32 {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]mask.count"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// Whether it has a token.
    pub fn allows(&self, token: Token) -> Result<bool, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]mask.allows"]
            fn call(_: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), token, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The number that `generation.options` and functions of other masks take.
    pub fn id(&self) -> u32 {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]mask.id"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]mask"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Mask {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Mask {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}

/// Where a matcher is.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Tokens that come next, whatever is sampled: the text that the constraint leaves no choice about, as the model
    /// writes it. The matcher has not gone through them.
    pub forced: Vec<Token>,
    /// What it has gone through is a whole text of the constraint: it may end here.
    pub may_end: bool,
    /// And nothing may follow.
    pub is_complete: bool,
    /// Why nothing is allowed here, for instance because of a token that was not; going back over it brings it back.
    pub problem: Option<String>,
}

impl Abi for Place {
    const SIZE: usize = 24;
    const ALIGN: usize = 4;
}

impl Load for Place {
    unsafe fn load(at: *const u8) -> Self {
        Self {
            forced: Load::load(at),
            may_end: Load::load(at.add(8)),
            is_complete: Load::load(at.add(9)),
            problem: Load::load(at.add(12)),
        }
    }
}

/// A way through a constraint that the program goes by itself, for its own sampling, scoring or splicing. Its work is
/// done beside the model's, and charged to the tenant: after each move wait for `ready`. What it says before that is
/// the error `unavailable`. It goes through at most as many tokens as the model's context has.
#[derive(Debug)]
pub struct Matcher(u32);

impl Matcher {
    pub(crate) fn handle(&self) -> u32 {
        self.0
    }

    /// Begins at the beginning of a compiled constraint.
    pub fn begin(constraint: &Constraint) -> Result<Matcher, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[static]matcher.begin"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(constraint.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The event that becomes ready whenever it has arrived, with an error if it cannot: `quota-exceeded` if the tenant
    /// follows too many constraints. The same at every call; it goes away with the matcher.
    pub fn ready(&self) -> Event {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]matcher.ready"]
            fn call(_: u32) -> u32;
        }
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe { call(self.handle()) }
    }

    /// Where it is.
    pub fn place(&self) -> Result<Place, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]matcher.place"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 4]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// The tokens that may come next, eos tokens where it may end. Of a text that is forced, the one token with which the
    /// model writes it.
    pub fn mask(&self) -> Result<Mask, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]matcher.mask"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Goes on by tokens, allowed or not.
    pub fn advance(&self, tokens: &[Token]) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]matcher.advance"]
            fn call(_: u32, _: u32, _: u32, _: u32);
        }
        let mut arena = Arena::default();
        let list1 = Token::list(tokens, &mut arena);
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), list1 as u32, tokens.len() as u32, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Goes back over so many tokens.
    pub fn rollback(&self, count: u32) -> Result<(), Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]matcher.rollback"]
            fn call(_: u32, _: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), count, result.at() as u32);
            Load::load(result.at())
        }
    }

    /// Makes another matcher at the same place, which goes its own way.
    pub fn fork(&self) -> Result<Matcher, Error> {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[method]matcher.fork"]
            fn call(_: u32, _: u32);
        }
        let mut result = Area([0; 3]);
        // SAFETY: the arguments are lowered as the contract says, and the host gives what it says.
        unsafe {
            call(self.handle(), result.at() as u32);
            Load::load(result.at())
        }
    }
}

impl Drop for Matcher {
    fn drop(&mut self) {
        #[link(wasm_import_module = "tartlet:inferlet/constraints@0.1.0")]
        extern "C" {
            #[link_name = "[resource-drop]matcher"]
            fn call(_: u32);
        }
        // SAFETY: nobody else has this handle.
        unsafe { call(self.0) }
    }
}

impl Abi for Matcher {
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
}

impl Load for Matcher {
    unsafe fn load(at: *const u8) -> Self {
        Self(u32::load(at))
    }
}
