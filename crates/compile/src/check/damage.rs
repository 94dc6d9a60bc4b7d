//! Checks of a program with syntax errors: they report the mistakes that are certain although pieces of the
//! program, called holes, could not be parsed.
//!
//! A name that may have been declared in a hole counts as one whose declaration is wrong, about which no
//! further error is reported, and so does a member of a type that was read in part. In a declaration with a
//! hole, nothing is reported as absent. If braces do not match, no error is reported in a declaration that
//! may have been read in another way than it was meant.

use std::collections::BTreeMap;

use syntax::ast::{self, Broken, DeclKind, Hole};
use syntax::diagnostics::Diagnostic;
use syntax::source::{FileId, Span};

use super::scope::Symbol;
use super::{Checked, Checker};

/// What could not be parsed, as far as it matters at the place that is being checked.
#[derive(Default)]
pub(super) struct Missing {
    /// Holes at the top level before this place.
    lost: Vec<Hole>,
    /// All holes of the program, for names that may be used before they are declared.
    all: Vec<Hole>,
    /// Holes in the top-level declaration that contains this place.
    around: Vec<Hole>,
    /// For that declaration, the tables with a hole, and whether its braces do not match; `None` if it was
    /// read as a whole.
    broken: Option<(Vec<Span>, bool)>,
    /// The structs and headers of which something is missing.
    types: Vec<std::sync::Arc<str>>,
    /// The declarations with a hole, by file and start; `None` if nothing is missing in the whole program.
    declarations: Option<BTreeMap<(FileId, u32), Span>>,
}

/// Codes of errors that something is absent, which may be in a hole of the same declaration.
const ABSENCES: &[&str] = &["E1005", "E1077", "E1100", "E1102", "E1110", "E1115"];

/// Codes of errors that too little is known of something, which may be only because types are missing.
const IGNORANCE: &[&str] = &["E1011", "E1027", "E1105", "E1138", "E1271"];

impl Missing {
    /// Returns whether the cause of a diagnostic may be only that a piece of the program could not be parsed.
    /// Such a diagnostic is not shown.
    pub(super) fn doubts(&self, d: &Diagnostic) -> bool {
        let Some(declarations) = &self.declarations else {
            return false;
        };
        // Declarations of the top level do not overlap.
        let is_broken = |place: Span| {
            let before = declarations.range(..=(place.file, place.start)).next_back();
            before.is_some_and(|(_, decl)| contains(*decl, place))
        };
        let elsewhere = |span: Span| is_broken(span) && !is_broken(d.span);
        let in_hole = || self.around.iter().any(|hole| contains(hole.span, d.span));
        !d.is_error()
            || IGNORANCE.contains(&d.code)
            || d.labels.iter().any(|label| elsewhere(label.span))
            || self.broken.as_ref().is_some_and(|(tables, unstructured)| {
                let in_table = || tables.iter().any(|table| contains(*table, d.span));
                *unstructured || ABSENCES.contains(&d.code) || in_table() || in_hole()
            })
    }
}

impl Checker {
    /// Checks the declarations of a program of which pieces could not be parsed.
    pub(super) fn damaged(&mut self, program: &ast::Program) {
        let broken = program.damage.broken.values().flat_map(|b| &b.holes);
        let all = program
            .damage
            .lost
            .iter()
            .map(|(_, hole)| hole)
            .chain(broken);
        self.missing.all = all.cloned().collect();
        let declarations = program.damage.broken.keys().map(|i| program.decls[*i].span);
        self.missing.declarations = Some(
            declarations
                .map(|span| ((span.file, span.start), span))
                .collect(),
        );
        let mut lost = program.damage.lost.iter().peekable();
        for (i, decl) in program.decls.iter().enumerate() {
            while let Some((_, hole)) = lost.next_if(|(next, _)| *next <= i) {
                self.missing.lost.push(hole.clone());
            }
            match program.damage.broken.get(&i) {
                None => self.declaration(decl),
                Some(broken) => self.broken(decl, broken),
            }
        }
    }

    /// Checks a declaration of which pieces could not be parsed, and enters its name into the scope. If too
    /// much is missing, enters the name as one whose declaration is wrong, so that its uses are not reported.
    fn broken(&mut self, decl: &ast::Decl, broken: &Broken) {
        let is_struct = matches!(
            decl.kind,
            DeclKind::Struct(_) | DeclKind::Header(_) | DeclKind::HeaderUnion(_)
        );
        let unknown = match &decl.kind {
            // Overloads may be missing; the others do not belong at the top level.
            DeclKind::Extern(_) | DeclKind::Var(_) | DeclKind::Table(_) | DeclKind::ValueSet(_) => {
                true
            }
            _ => broken.unstructured && !is_struct,
        };
        if let Some(name) = decl.name().filter(|_| unknown) {
            self.declare(name, Symbol::Missing);
            self.missing.lost.extend(broken.holes.iter().cloned());
            return;
        }
        if let Some(name) = decl.name().filter(|_| is_struct) {
            self.missing.types.push(name.text.clone());
        }
        self.missing.around = broken.holes.clone();
        self.missing.broken = Some((broken_tables(decl, &broken.holes), broken.unstructured));
        self.declaration(decl);
        self.missing.around.clear();
        self.missing.broken = None;
        if broken.unstructured {
            self.missing.lost.extend(broken.holes.iter().cloned());
        }
    }
}

impl Checked {
    /// Returns whether `name` may have been declared in a hole that stands before its use or in the same
    /// declaration. A hole is a piece of the program that could not be parsed.
    pub(super) fn may_be_lost(&self, name: &str) -> bool {
        let mut holes = self.missing.lost.iter().chain(&self.missing.around);
        holes.any(|hole| hole.may_declare(name))
    }

    /// Returns whether `name` may have been declared in any piece of the program that could not be parsed,
    /// before or after its use.
    pub(super) fn may_be_lost_anywhere(&self, name: &str) -> bool {
        self.missing.all.iter().any(|hole| hole.may_declare(name))
    }

    /// Returns whether a path with a leading dot (`.name`) may be the end of a longer expression whose
    /// beginning could not be parsed.
    pub(super) fn may_be_cut(&self, path: &ast::Path) -> bool {
        path.absolute && !self.missing.around.is_empty()
    }

    /// Returns whether the struct or header `name` may have members that could not be parsed.
    pub(super) fn is_incomplete(&self, name: &str) -> bool {
        self.missing.types.iter().any(|known| &**known == name)
    }
}

/// Returns the places of the tables, among the local declarations of a control, that contain one of `holes`,
/// the pieces that could not be parsed.
fn broken_tables(decl: &ast::Decl, holes: &[Hole]) -> Vec<Span> {
    let locals = match &decl.kind {
        DeclKind::Control(control) => &control.locals[..],
        _ => &[],
    };
    let is_broken = |span: Span| holes.iter().any(|hole| contains(span, hole.span));
    let tables = locals
        .iter()
        .filter(|d| matches!(d.kind, DeclKind::Table(_)));
    tables
        .map(|d| d.span)
        .filter(|span| is_broken(*span))
        .collect()
}

fn contains(outer: Span, inner: Span) -> bool {
    outer.file == inner.file && outer.start <= inner.start && inner.start <= outer.end
}
