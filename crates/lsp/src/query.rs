//! What is known of the name at a position: its declaration, its uses, and what it is.

use std::path::Path;

use lsp_types::{Hover, HoverContents, Location, MarkupContent, MarkupKind, Position, Range};
use syntax::source::{Expansion, Span};

use crate::paths;
use crate::snapshot::Snapshot;

/// Returns the place at which the name at a position is declared: for a name of the program its declaration, for a
/// macro its `#define`, and for an `#include` the file.
pub fn definition(snapshot: &Snapshot, path: &Path, position: Position) -> Option<Location> {
    if let Some((_, declared)) = snapshot.name_at(path, position) {
        return snapshot.location(declared);
    }
    if let Some(used) = snapshot.macro_at(path, position) {
        return snapshot.location(used.definition);
    }
    let included = snapshot.included_at(path, position)?;
    Some(Location::new(paths::uri_of(included)?, Range::default()))
}

/// Returns the places at which the name at a position is used, in order, with that of its declaration if
/// `with_declaration` is true. A use that a macro makes has the place of the macro's use.
pub fn references(
    snapshot: &Snapshot,
    path: &Path,
    position: Position,
    with_declaration: bool,
) -> Vec<Location> {
    let (declared, uses): (Span, Vec<Span>) = match snapshot.name_at(path, position) {
        Some((_, declared)) => (
            declared,
            snapshot.analysis.names.uses_of(declared).collect(),
        ),
        None => match snapshot.macro_at(path, position) {
            Some(used) => (used.definition, sites(snapshot, used)),
            None => return Vec::new(),
        },
    };
    let declaration = with_declaration.then_some(declared);
    let mut found: Vec<Location> = Vec::new();
    for span in declaration.into_iter().chain(uses) {
        // A file that is included twice has each place twice.
        if let Some(location) = snapshot.location(span).filter(|l| !found.contains(l)) {
            found.push(location);
        }
    }
    found
}

/// Returns the places of the name of a macro in its uses.
fn sites(snapshot: &Snapshot, used: &Expansion) -> Vec<Span> {
    let all = snapshot.analysis.sources.expansions();
    let same = all.filter(|other| other.definition == used.definition);
    let of_name = |other: &Expansion| {
        let site = other.site;
        Span::new(
            site.file,
            site.start,
            site.start + other.macro_name.len() as u32,
        )
    };
    same.map(of_name).collect()
}

/// Returns what is known of the name at a position: its declaration, its type and width, and the comment above the
/// declaration.
pub fn hover(snapshot: &Snapshot, path: &Path, position: Position) -> Option<Hover> {
    let (at, text) = match snapshot.name_at(path, position) {
        Some((at, declared)) => (at, of_name(snapshot, declared)?),
        None => {
            let used = snapshot.macro_at(path, position)?;
            let (_, line) = snapshot.analysis.sources.line(used.definition);
            (used.site, fenced(line.trim()))
        }
    };
    let range = snapshot.location(at).map(|l| l.range);
    Some(Hover {
        contents: HoverContents::Markup(MarkupContent {
            kind: MarkupKind::Markdown,
            value: text,
        }),
        range,
    })
}

fn of_name(snapshot: &Snapshot, declared: Span) -> Option<String> {
    let declaration = snapshot.declaration(declared)?;
    if declaration.detail.is_empty() {
        return None;
    }
    let mut text = fenced(&declaration.detail);
    if !declaration.note.is_empty() {
        text.push_str(&format!("\n\n{}", declaration.note));
    }
    let comment = comment_above(snapshot, declared);
    if !comment.is_empty() {
        text.push_str(&format!("\n\n{comment}"));
    }
    Some(text)
}

fn fenced(code: &str) -> String {
    format!("```p4\n{code}\n```")
}

/// Returns the text of the comment that stands on the lines directly above a declaration; empty if there is none, or if
/// the line has the beginning of what is around the declaration.
fn comment_above(snapshot: &Snapshot, declared: Span) -> String {
    let Some((_, text)) = snapshot.file(declared) else {
        return String::new();
    };
    let (line, _) = snapshot.analysis.sources.line(declared);
    let before = Span::new(line.file, line.start, declared.start);
    if snapshot.analysis.sources.text(before).contains(['{', '(']) {
        return String::new();
    }
    let first = text
        .position(declared.start as usize, snapshot.encoding)
        .line as usize;
    let mut lines: Vec<&str> = Vec::new();
    let mut in_block = false;
    for line in (0..first).rev().map(|line| text.line(line).trim()) {
        in_block |= line.ends_with("*/");
        let is_annotation = lines.is_empty() && line.starts_with('@');
        if !in_block && !line.starts_with("//") && !is_annotation {
            break;
        }
        in_block &= !line.starts_with("/*");
        if !is_annotation {
            lines.push(
                line.trim_start_matches(['/', '*', '!'])
                    .trim_end_matches("*/")
                    .trim(),
            );
        }
    }
    lines.reverse();
    lines.join("\n").trim().to_string()
}
