//! Renaming: the edits, and the proof by the compiler that the program still means the same.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use lsp_types::{Position, Range, TextEdit, WorkspaceEdit};
use syntax::source::Span;

use crate::paths;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::text::Text;

/// Returns the edits that give the name at a position the name `new` everywhere. Fails with the reason if there is no
/// name, if it cannot be changed, or if the program would not mean the same.
pub fn rename(
    session: &mut Session,
    path: &Path,
    position: Position,
    new: &str,
) -> Result<WorkspaceEdit, String> {
    let snapshot = session.snapshot(path).ok_or("the document is not open")?;
    let (declared, spans) = places(snapshot, path, position)?;
    if !syntax::is_identifier(new) {
        return Err(format!("`{new}` is no identifier of P4"));
    }
    let mut edits: BTreeMap<PathBuf, Vec<TextEdit>> = BTreeMap::new();
    let mut texts: BTreeMap<PathBuf, Text> = BTreeMap::new();
    for span in &spans {
        let (file, text) = snapshot.file(*span).ok_or("a use is in no file")?;
        let range = text.range(span.start as usize, span.end as usize, snapshot.encoding);
        let edit = TextEdit::new(range, new.to_string());
        let list = edits.entry(file.clone()).or_default();
        if !list.contains(&edit) {
            list.push(edit);
        }
        texts.entry(file.clone()).or_insert_with(|| text.clone());
    }
    // The edits are applied from the last to the first.
    for list in edits.values_mut() {
        list.sort_by_key(|edit| edit.range.start);
    }
    let moved = position_after(snapshot, &edits, declared)?;
    for (file, text) in &mut texts {
        for edit in edits.get(file).into_iter().flatten().rev() {
            *text = text.edited(edit.range, new, snapshot.encoding);
        }
    }
    let (errors, uses) = (count_errors(snapshot), spans.len());
    let (declared_in, _) = snapshot.file(declared).ok_or("it is declared in no file")?;
    let declared_in = declared_in.clone();
    let after = session
        .supposed(path, texts)
        .ok_or("the document is not open")?;
    let same = places(&after, &declared_in, moved).is_ok_and(|(_, now)| now.len() == uses);
    if count_errors(&after) > errors || !same {
        return Err(format!(
            "`{new}` would change what the program means: {}",
            conflict(&after)
        ));
    }
    let changes: Option<HashMap<_, _>> = edits
        .into_iter()
        .map(|(file, list)| Some((paths::uri_of(&file)?, list)))
        .collect();
    Ok(WorkspaceEdit {
        changes: Some(changes.ok_or("a file has a name that no URI has")?),
        ..WorkspaceEdit::default()
    })
}

/// Returns the range of the name at a position if it can be renamed; fails with the reason otherwise.
pub(crate) fn prepare(
    snapshot: &Snapshot,
    path: &Path,
    position: Position,
) -> Result<Range, String> {
    places(snapshot, path, position)?;
    let at = snapshot
        .name_at(path, position)
        .and_then(|(at, _)| snapshot.location(at));
    at.map(|l| l.range)
        .ok_or_else(|| "there is no name here".to_string())
}

/// Returns the place of the declaration of the name at a position, and those of the declaration and all uses, in
/// order. Fails with the reason if one of them cannot be changed.
fn places(
    snapshot: &Snapshot,
    path: &Path,
    position: Position,
) -> Result<(Span, Vec<Span>), String> {
    let found = snapshot.name_at(path, position);
    let (_, declared) = found.ok_or("there is no name of the program here")?;
    let uses = snapshot.analysis.names.uses_of(declared);
    let mut all: Vec<Span> = std::iter::once(declared).chain(uses).collect();
    all.sort();
    for span in &all {
        if snapshot.is_built_in(*span) {
            return Err("it is declared or used in a file that is built into the compiler".into());
        }
        if !snapshot.is_written(*span, declared) {
            let at = snapshot.analysis.sources.location(*span);
            return Err(format!("a macro uses it, at {}:{}", at.file, at.line));
        }
    }
    Ok((declared, all))
}

/// Returns the position of the start of the declared name after the edits.
fn position_after(
    snapshot: &Snapshot,
    edits: &BTreeMap<PathBuf, Vec<TextEdit>>,
    declared: Span,
) -> Result<Position, String> {
    let (file, text) = snapshot.file(declared).ok_or("it is declared in no file")?;
    let start = text.position(declared.start as usize, snapshot.encoding);
    let mut at = start;
    let all = edits.get(file).into_iter().flatten();
    for edit in all.filter(|e| e.range.start.line == start.line && e.range.end <= start) {
        let length = edit.range.end.character - edit.range.start.character;
        // Identifiers are ASCII: their length is the same in every unit.
        at.character = (at.character + edit.new_text.len() as u32).saturating_sub(length);
    }
    Ok(at)
}

fn count_errors(snapshot: &Snapshot) -> usize {
    let all = snapshot.analysis.diagnostics.iter();
    all.filter(|d| d.is_error()).count()
}

fn conflict(snapshot: &Snapshot) -> String {
    let mut all = snapshot.analysis.diagnostics.iter();
    match all.find(|d| d.is_error()) {
        Some(error) => error.message.clone(),
        None => "another declaration has this name".to_string(),
    }
}
