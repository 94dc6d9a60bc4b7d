//! Diagnostics of the compiler as the protocol has them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lsp_types::{Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, NumberOrString};

use crate::snapshot::Snapshot;

/// Returns the diagnostics of a program by file; an empty list for each file without any.
pub(crate) fn by_file(snapshot: &Snapshot) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
    let mut found: BTreeMap<PathBuf, Vec<Diagnostic>> = snapshot
        .paths()
        .map(|path| (path.to_path_buf(), Vec::new()))
        .collect();
    for diagnostic in &snapshot.analysis.diagnostics {
        let Some((path, _)) = snapshot.file(diagnostic.span) else {
            continue;
        };
        let Some(shown) = converted(snapshot, diagnostic) else {
            continue;
        };
        let list = found.entry(path.clone()).or_default();
        // A file that is included twice says everything twice.
        if !list.contains(&shown) {
            list.push(shown);
        }
    }
    found
}

fn converted(snapshot: &Snapshot, diagnostic: &syntax::Diagnostic) -> Option<Diagnostic> {
    let related: Vec<DiagnosticRelatedInformation> = diagnostic
        .labels
        .iter()
        .filter_map(|label| {
            Some(DiagnosticRelatedInformation {
                location: snapshot.location(label.span)?,
                message: label.message.clone(),
            })
        })
        .collect();
    let notes = diagnostic
        .notes
        .iter()
        .map(|note| format!("\nnote: {note}"));
    let hint = diagnostic.hint.iter().map(|hint| format!("\nhint: {hint}"));
    let more: String = notes.chain(hint).collect();
    Some(Diagnostic {
        range: snapshot.location(diagnostic.span)?.range,
        severity: Some(match diagnostic.is_error() {
            true => DiagnosticSeverity::ERROR,
            false => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(diagnostic.code.to_string())),
        source: Some("holdfast".to_string()),
        message: format!("{}{more}", diagnostic.message),
        related_information: (!related.is_empty()).then_some(related),
        ..Diagnostic::default()
    })
}
