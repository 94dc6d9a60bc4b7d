//! Completion: the checker tells what could stand where a name is written.
//!
//! The name under the cursor is replaced by a word that no program has, and the front end is asked what it would
//! accept in its place. What is being typed is seldom a whole statement, so some ways to complete it are tried.

use std::path::Path;

use compile::{Declaration, NameKind};
use lsp_types::{CompletionItem, CompletionItemKind, Position};

use crate::session::Session;
use crate::text::Text;

/// The word in the place of which names are wanted.
const WORD: &str = "holdfast_completion_here";

/// The texts that are tried behind the word at the cursor, until the parser gets as far as the word.
const ENDINGS: [&str; 9] = [
    "", ";", "();", " = 0;", ": exact;", " x;", ");", ") {}", ")) {}",
];

/// Returns the names that could stand at a position of an open document.
pub fn complete(session: &mut Session, path: &Path, position: Position) -> Vec<CompletionItem> {
    session.refresh();
    let encoding = session.settings().encoding;
    let Some(text) = session.document(path).cloned() else {
        return Vec::new();
    };
    let at = text.offset(position, encoding);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (before, after) = text.as_str().split_at(at);
    let start = before.trim_end_matches(is_word);
    let rest = after.trim_start_matches(is_word);
    for ending in ENDINGS {
        let supposed = Text::new([start, WORD, ending, rest].concat());
        let found = session.names_for(path, supposed, WORD);
        if !found.is_empty() {
            return found.iter().map(item).collect();
        }
    }
    Vec::new()
}

fn item(declaration: &Declaration) -> CompletionItem {
    let detail = [&*declaration.detail, &*declaration.note];
    let detail: Vec<&str> = detail.into_iter().filter(|t| !t.is_empty()).collect();
    CompletionItem {
        label: declaration.name.to_string(),
        kind: Some(kind(declaration.kind)),
        detail: (!detail.is_empty()).then(|| detail.join("; ")),
        ..CompletionItem::default()
    }
}

fn kind(kind: NameKind) -> CompletionItemKind {
    match kind {
        NameKind::Struct | NameKind::Type => CompletionItemKind::STRUCT,
        NameKind::Enum => CompletionItemKind::ENUM,
        NameKind::Extern => CompletionItemKind::CLASS,
        NameKind::Block => CompletionItemKind::MODULE,
        NameKind::Constant => CompletionItemKind::CONSTANT,
        NameKind::Variable | NameKind::Parameter | NameKind::Unknown => {
            CompletionItemKind::VARIABLE
        }
        NameKind::Instance | NameKind::Table => CompletionItemKind::VALUE,
        NameKind::Function | NameKind::Action => CompletionItemKind::FUNCTION,
        NameKind::Method => CompletionItemKind::METHOD,
        NameKind::State => CompletionItemKind::EVENT,
        NameKind::Field => CompletionItemKind::FIELD,
        NameKind::Member => CompletionItemKind::ENUM_MEMBER,
        NameKind::Property => CompletionItemKind::PROPERTY,
    }
}
