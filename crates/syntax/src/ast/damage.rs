//! The parts of a program that could not be read, for passes that report only what is certain all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::source::Span;

/// The parts of a program that the tree lacks because they could not be read. Without errors, nothing is missing.
#[derive(Clone, Debug, Default)]
pub struct Damage {
    /// The top-level declarations that are incomplete, by their position.
    pub broken: BTreeMap<usize, Broken>,
    /// The missing texts between top-level declarations, each with the position of the declaration that follows.
    pub lost: Vec<(usize, Hole)>,
    /// True if so much is unknown that nothing is certain: a file or a macro is missing, or all that follows where a
    /// limit was exceeded.
    pub hopeless: bool,
}

/// What is missing in a declaration that was read in part.
#[derive(Clone, Debug, Default)]
pub struct Broken {
    /// The missing texts in it.
    pub holes: Vec<Hole>,
    /// True if the program has a `{` or `}` too many or too few, so that it is not certain where anything in the
    /// declaration ends.
    pub unstructured: bool,
}

/// A text that could not be read, so that the tree lacks it.
#[derive(Clone, Debug, Default)]
pub struct Hole {
    /// Its place in the source.
    pub span: Span,
    /// The words in it, which may have been declared there.
    pub words: BTreeSet<Arc<str>>,
    /// True if it may have declared something whose name is not among the words.
    pub nameless: bool,
}

impl Hole {
    /// Returns whether `name` may have been declared in this hole, a piece of the program that could not be parsed.
    pub fn may_declare(&self, name: &str) -> bool {
        self.nameless || self.words.contains(name)
    }
}

impl Damage {
    /// Returns whether the syntax tree contains the whole program.
    pub fn is_none(&self) -> bool {
        self.broken.is_empty() && self.lost.is_empty() && !self.hopeless
    }
}
