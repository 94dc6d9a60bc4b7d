//! The parts of a program that could not be read, for passes that report only what is certain all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::source::Span;

/// Everything that is missing from a tree. A program without errors has none.
#[derive(Clone, Debug, Default)]
pub struct Damage {
    /// The declarations of the top level that lack something, by their position.
    pub broken: BTreeMap<usize, Broken>,
    /// Holes between declarations of the top level, with the position of the declaration that comes next.
    pub lost: Vec<(usize, Hole)>,
    /// True if so much is unknown that nothing can be certain: a file or a macro, or all that follows a limit.
    pub hopeless: bool,
}

/// A declaration that was read in part.
#[derive(Clone, Debug, Default)]
pub struct Broken {
    /// The holes in it.
    pub holes: Vec<Hole>,
    /// True if a brace is missing or too many in the program, so that it is not certain where anything in it ends.
    pub unstructured: bool,
}

/// A piece of text that is not in the tree.
#[derive(Clone, Debug, Default)]
pub struct Hole {
    /// Its place.
    pub span: Span,
    /// The words in it, which may have been declared there.
    pub words: BTreeSet<Arc<str>>,
    /// True if a declaration may have stood there whose name is not among the words.
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
