//! The outline of a file: its declarations, from the syntax tree.

use std::path::Path;

use lsp_types::{DocumentSymbol, SymbolKind};
use syntax::ast::{self, DeclKind, Name};
use syntax::source::Span;

use crate::snapshot::Snapshot;

/// Returns the declarations of the file at `path`, with what they contain.
pub fn outline(snapshot: &Snapshot, path: &Path) -> Vec<DocumentSymbol> {
    let mut found: Vec<DocumentSymbol> = Vec::new();
    for decl in &snapshot.analysis.tree.decls {
        let here = snapshot.file(decl.span).is_some_and(|(at, _)| at == path);
        let symbols = if here {
            of_decl(snapshot, decl)
        } else {
            Vec::new()
        };
        for symbol in symbols {
            // A file that is included twice has each declaration twice.
            if !found.contains(&symbol) {
                found.push(symbol);
            }
        }
    }
    found
}

fn of_decl(snapshot: &Snapshot, decl: &ast::Decl) -> Vec<DocumentSymbol> {
    let one = |name: &Name, kind: SymbolKind, children: Vec<DocumentSymbol>| {
        symbol(snapshot, name, decl.span, kind, children)
            .into_iter()
            .collect()
    };
    let fields = |decl: &ast::StructLike| {
        let fields = decl.fields.iter();
        fields
            .filter_map(|f| symbol(snapshot, &f.name, f.span, SymbolKind::FIELD, Vec::new()))
            .collect()
    };
    let locals = |locals: &[ast::Decl]| locals.iter().flat_map(|d| of_decl(snapshot, d)).collect();
    match &decl.kind {
        DeclKind::Const(d) => one(&d.name, SymbolKind::CONSTANT, Vec::new()),
        DeclKind::Var(d) => one(&d.name, SymbolKind::VARIABLE, Vec::new()),
        DeclKind::Instantiation(d) => one(&d.name, SymbolKind::OBJECT, Vec::new()),
        DeclKind::ValueSet(d) => one(&d.name, SymbolKind::OBJECT, Vec::new()),
        DeclKind::Function(d) => one(&d.signature.name, SymbolKind::FUNCTION, Vec::new()),
        DeclKind::ExternFunction(d) => one(&d.name, SymbolKind::FUNCTION, Vec::new()),
        DeclKind::Extern(d) => one(&d.name, SymbolKind::CLASS, methods(snapshot, d)),
        DeclKind::Action(d) => one(&d.name, SymbolKind::FUNCTION, Vec::new()),
        DeclKind::Table(d) => one(&d.name, SymbolKind::ARRAY, Vec::new()),
        DeclKind::Parser(d) => {
            let mut inside: Vec<DocumentSymbol> = locals(&d.locals);
            inside.extend(d.states.iter().filter_map(|state| {
                symbol(
                    snapshot,
                    &state.name,
                    state.span,
                    SymbolKind::EVENT,
                    Vec::new(),
                )
            }));
            one(&d.ty.name, SymbolKind::CLASS, inside)
        }
        DeclKind::Control(d) => one(&d.ty.name, SymbolKind::CLASS, locals(&d.locals)),
        DeclKind::ParserType(d) | DeclKind::ControlType(d) | DeclKind::Package(d) => {
            one(&d.name, SymbolKind::INTERFACE, Vec::new())
        }
        DeclKind::Typedef(d) => one(&d.name, SymbolKind::TYPE_PARAMETER, Vec::new()),
        DeclKind::NewType(d) => one(&d.name, SymbolKind::TYPE_PARAMETER, Vec::new()),
        DeclKind::Header(d) | DeclKind::HeaderUnion(d) | DeclKind::Struct(d) => {
            one(&d.name, SymbolKind::STRUCT, fields(d))
        }
        DeclKind::Enum(d) => {
            let members = d.members.iter().filter_map(|m| member(snapshot, &m.name));
            one(&d.name, SymbolKind::ENUM, members.collect())
        }
        DeclKind::Error(names) | DeclKind::MatchKind(names) => names
            .iter()
            .filter_map(|name| member(snapshot, name))
            .collect(),
    }
}

fn methods(snapshot: &Snapshot, decl: &ast::ExternDecl) -> Vec<DocumentSymbol> {
    let members = decl.members.iter();
    let shown = members.filter_map(|member| {
        let name = match &member.kind {
            ast::ExternMemberKind::Constructor { name, .. } => name,
            ast::ExternMemberKind::Method { signature, .. } => &signature.name,
        };
        symbol(snapshot, name, member.span, SymbolKind::METHOD, Vec::new())
    });
    shown.collect()
}

fn member(snapshot: &Snapshot, name: &Name) -> Option<DocumentSymbol> {
    symbol(
        snapshot,
        name,
        name.span,
        SymbolKind::ENUM_MEMBER,
        Vec::new(),
    )
}

/// Makes a symbol; `None` for a name that is missing. What a macro declares is at the macro's use.
fn symbol(
    snapshot: &Snapshot,
    name: &Name,
    whole: Span,
    kind: SymbolKind,
    children: Vec<DocumentSymbol>,
) -> Option<DocumentSymbol> {
    if name.as_str().is_empty() {
        return None;
    }
    let selection = snapshot.location(name.span)?.range;
    let around = whole.file == name.span.file && whole.start <= name.span.start;
    let whole = if around {
        whole.to(name.span.to(whole))
    } else {
        name.span
    };
    let mut range = snapshot.location(whole)?.range;
    range.end = range.end.max(selection.end);
    let detail = snapshot.declaration(name.span).map(|d| d.detail.clone());
    #[allow(deprecated, reason = "the field has no other constructor")]
    Some(DocumentSymbol {
        name: name.to_string(),
        detail: detail.filter(|d| !d.is_empty()),
        kind,
        tags: None,
        deprecated: None,
        range,
        selection_range: selection,
        children: (!children.is_empty()).then_some(children),
    })
}
