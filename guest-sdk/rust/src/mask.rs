//! Sets of tokens, which stay on the host.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not, Sub};
use std::rc::Rc;

use crate::error::{expect, Named, Result};
use crate::model::Model;
use crate::wit::constraints;

/// A set of tokens of a model. Nothing changes it: `&`, `|`, `-` and `!` make others, on the host.
///
/// Eos tokens are tokens like any other: without them in the mask the model cannot end by itself.
/// The operators panic where the run may have no more masks (1,024).
#[derive(Clone)]
pub struct Mask {
    handle: Rc<constraints::Mask>,
}

impl Mask {
    fn new(handle: constraints::Mask) -> Self {
        Self { handle: Rc::new(handle) }
    }

    /// These tokens.
    pub fn of(model: &Model, tokens: &[u32]) -> Result<Self> {
        constraints::Mask::tokens(model.handle(), tokens).map(Self::new).named("Mask.of")
    }

    /// All tokens.
    pub fn all(model: &Model) -> Result<Self> {
        constraints::Mask::all(model.handle()).map(Self::new).named("Mask.all")
    }

    /// The tokens whose bytes the predicate is true of; special tokens have those of their names.
    pub fn filter(model: &Model, mut predicate: impl FnMut(&[u8]) -> bool) -> Result<Self> {
        let vocabulary = model.vocabulary()?;
        let mut words = vec![0u64; vocabulary.len().div_ceil(64)];
        for (token, bytes) in vocabulary.iter().enumerate() {
            words[token / 64] |= u64::from(predicate(bytes)) << (token % 64);
        }
        constraints::Mask::words(model.handle(), &words).map(Self::new).named("Mask.filter")
    }

    /// Those of these tokens that this one has.
    pub fn restrict(&self, tokens: &[u32]) -> Result<Self> {
        self.handle.restrict(tokens).map(Self::new).named("Mask.restrict")
    }

    /// Whether it has a token.
    pub fn contains(&self, token: u32) -> Result<bool> {
        self.handle.allows(token).named("Mask.contains")
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.handle.count() as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn from_handle(handle: constraints::Mask) -> Self {
        Self::new(handle)
    }

    pub(crate) fn handle(&self) -> &constraints::Mask {
        &self.handle
    }

    pub(crate) fn id(&self) -> u32 {
        self.handle.id()
    }
}

impl BitAnd for &Mask {
    type Output = Mask;

    #[track_caller]
    fn bitand(self, other: &Mask) -> Mask {
        Mask::new(expect(self.handle.intersection(&[other.id()]).named("Mask.&")))
    }
}

impl BitOr for &Mask {
    type Output = Mask;

    #[track_caller]
    fn bitor(self, other: &Mask) -> Mask {
        Mask::new(expect(self.handle.union(&[other.id()]).named("Mask.|")))
    }
}

impl Not for &Mask {
    type Output = Mask;

    #[track_caller]
    fn not(self) -> Mask {
        Mask::new(expect(self.handle.complement().named("Mask.!")))
    }
}

impl Sub for &Mask {
    type Output = Mask;

    #[track_caller]
    fn sub(self, other: &Mask) -> Mask {
        self & &!other
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mask({} tokens)", self.len())
    }
}
