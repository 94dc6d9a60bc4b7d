//! The names of a program: what each declares, and the declaration that each use means, as the checker resolved them.
//!
//! The checker fills it for editors; a compilation does without. Places are those of the written names. A name that a
//! macro made has the place where the macro is used. This file knows neither scopes nor expressions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use syntax::source::Span;

/// The kind of a declared name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A struct, header or header union.
    Struct,
    /// An enum.
    Enum,
    /// Any other type: a typedef, a new type or a type parameter.
    Type,
    /// An extern object type.
    Extern,
    /// A parser, control or package, or a type of one.
    Block,
    /// A constant.
    Constant,
    /// A local variable.
    Variable,
    /// A parameter.
    Parameter,
    /// An instance of an extern, parser, control or package, or a value set.
    Instance,
    /// A function.
    Function,
    /// A method or constructor of an extern.
    Method,
    /// An action.
    Action,
    /// A table.
    Table,
    /// A parser state.
    State,
    /// A field of a struct, header or header union.
    Field,
    /// A member of an enum, an error or a match kind.
    Member,
    /// A property of a table.
    Property,
    /// A name whose declaration has an error.
    Unknown,
}

/// A declared name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The name.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: NameKind,
    /// The declaration in short, as P4 writes it, such as `bit<32> dstAddr`; empty if nothing is known.
    pub detail: String,
    /// A sentence that adds to `detail`, such as the width or the type that has the field; may be empty.
    pub note: String,
    /// The place of the name in its declaration; `None` for what the language itself declares.
    pub place: Option<Span>,
}

/// All names of a program.
#[derive(Clone, Debug, Default)]
pub struct Names {
    declarations: BTreeMap<Span, Declaration>,
    /// The places of uses and of the names that they mean. A macro can make several uses at one place.
    uses: BTreeSet<(Span, Span)>,
    /// The places of the names of parameters, by those of the whole parameters.
    params: BTreeMap<Span, Span>,
    /// The places of members of enums (by the type's name, and `error` and `match_kind`) and their names.
    members: BTreeMap<(Arc<str>, Arc<str>), Span>,
    /// The word in the place of which names are wanted; the checker collects them when it meets the word.
    wanted: Option<Arc<str>>,
    candidates: Vec<Declaration>,
}

impl Names {
    /// Makes an empty table in which the checker also collects the names that could stand where `word` does.
    pub(crate) fn completing(word: &str) -> Names {
        Names {
            wanted: Some(word.into()),
            ..Names::default()
        }
    }

    /// Returns the declaration whose name stands at `place`; `None` if none does.
    pub fn declaration(&self, place: Span) -> Option<&Declaration> {
        self.declarations.get(&place)
    }

    /// Returns all declarations by the places of their names.
    pub fn declarations(&self) -> impl Iterator<Item = (Span, &Declaration)> {
        self.declarations.iter().map(|(place, d)| (*place, d))
    }

    /// Returns all uses of names: the place of each, and that of the declared name.
    pub fn uses(&self) -> impl Iterator<Item = (Span, Span)> {
        self.uses.iter().copied()
    }

    /// Returns the names around the byte `offset` of a file: the place of each, and that of the declared name that it
    /// means, which is its own place if it is the declaration. There are several only where a macro makes them.
    pub fn at(&self, file: syntax::source::FileId, offset: u32) -> Vec<(Span, Span)> {
        let last = Span::new(file, offset, u32::MAX);
        let around = |span: Span| span.file == file && span.start <= offset && offset <= span.end;
        let used = self.uses.range(..=(last, last)).next_back();
        let used = used.map(|(at, _)| *at).filter(|at| around(*at));
        let declared = self.declarations.range(..=last).next_back();
        let declared = declared.map(|(at, _)| *at).filter(|at| around(*at));
        // The later one of both, since the end of a name belongs to it, too.
        let Some(at) = used.max(declared) else {
            return Vec::new();
        };
        let own = self.declarations.contains_key(&at).then_some((at, at));
        own.into_iter().chain(self.meant_at(at)).collect()
    }

    /// Returns the uses at a place.
    fn meant_at(&self, at: Span) -> impl Iterator<Item = (Span, Span)> + '_ {
        let first = (at, Span::default());
        self.uses
            .range(first..)
            .take_while(move |(here, _)| *here == at)
            .copied()
    }

    /// Returns the places of all uses of the name that is declared at `place`, in order.
    pub fn uses_of(&self, place: Span) -> impl Iterator<Item = Span> {
        let uses = self
            .uses
            .iter()
            .filter(move |(_, declared)| *declared == place);
        uses.map(|(at, _)| *at)
    }

    /// Returns the names that could stand where the wanted word does, each once.
    pub(crate) fn into_candidates(self) -> Vec<Declaration> {
        let mut seen = BTreeSet::new();
        let mut all = self.candidates;
        all.retain(|c| seen.insert(c.name.clone()));
        all
    }

    /// Returns whether `name` is the word in the place of which names are wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.wanted.as_deref() == Some(name)
    }

    pub(crate) fn offer(&mut self, candidate: Declaration) {
        self.candidates.push(candidate);
    }

    /// Enters a use of the name that is declared at `declared`.
    pub(crate) fn enter_use(&mut self, at: Span, declared: Span) {
        if at != declared {
            self.uses.insert((at, declared));
        }
    }

    /// Enters a use of one of several functions with a name, instead of that of the first.
    pub(crate) fn enter_overload(&mut self, at: Span, name: &str, declared: Span) {
        let first = self.meant_at(at).find(|(_, place)| {
            let found = self.declarations.get(place);
            found.is_some_and(|d| &*d.name == name)
        });
        if let Some(first) = first {
            self.uses.remove(&first);
        }
        self.enter_use(at, declared);
    }

    /// Enters a declaration, unless one is known at its place: what is generic is checked first as it is written.
    pub(crate) fn enter(&mut self, place: Span, declaration: Declaration) {
        self.declarations.entry(place).or_insert(declaration);
    }

    pub(crate) fn enter_param(&mut self, whole: Span, name: Span) {
        self.params.insert(whole, name);
    }

    /// Returns the place of the name of the parameter at `whole`; `None` if it is unknown.
    pub(crate) fn param(&self, whole: Span) -> Option<Span> {
        self.params.get(&whole).copied()
    }

    pub(crate) fn enter_member(&mut self, of: &Arc<str>, name: &Arc<str>, place: Span) {
        let key = (of.clone(), name.clone());
        self.members.entry(key).or_insert(place);
    }

    /// Returns the place at which the member `name` of the enum `of`, or of `error` or `match_kind`, is declared.
    pub(crate) fn member(&self, of: &str, name: &str) -> Option<Span> {
        self.members.get(&(of.into(), name.into())).copied()
    }
}
