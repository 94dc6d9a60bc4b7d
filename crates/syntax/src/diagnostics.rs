//! Diagnostics of a program, and their presentation to users.
//!
//! Every room that analyses programs makes its own [`Diagnostic`]s with constructor functions in one file of its own
//! (here `errors.rs`) and its own range of codes: `syntax` has E0001 to E0999 (and W0001 to W0999 for warnings),
//! `compile` has E1000 and up. Nothing here knows any particular error.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::source::{SourceMap, Span};

/// The severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The program is valid, but perhaps does not mean what was intended.
    Warning,
    /// The program is not valid P4.
    Error,
}

/// An error or a warning about a place in the program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Diagnostic {
    /// A stable code such as `E0201`, unique to one constructor function.
    pub code: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// One sentence, lower case, no full stop, names in backquotes.
    pub message: String,
    /// The place in the source.
    pub span: Span,
    /// Other places in the source that explain it.
    pub labels: Vec<Label>,
    /// Explanations that belong to no place.
    pub notes: Vec<String>,
    /// How the program could be corrected, if that is known.
    pub hint: Option<String>,
}

/// Defines constructor functions of diagnostics. Each line states the parameters (besides the place), the severity,
/// the code, the message as a format string with its arguments, and what is added, such as hints.
#[macro_export]
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($param:ident: $ty:ty),*) =>
            $severity:ident($code:literal, $($message:tt)+) $(.$addition:ident($($args:tt)+))*;
    )*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(span: $crate::source::Span, $($param: $ty),*) -> $crate::Diagnostic {
            $crate::Diagnostic::$severity($code, span, format!($($message)+))
                $(.$addition($($args)+))*
        }
    )*};
}

/// Another place in the source that explains a diagnostic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The place in the source.
    pub span: Span,
    /// The text of the label.
    pub message: String,
}

impl Diagnostic {
    /// Makes an error at `span`, without labels, notes and hint.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            span,
            labels: Vec::new(),
            notes: Vec::new(),
            hint: None,
        }
    }

    /// Makes a warning at `span`, without labels, notes and hint.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, span, message)
        }
    }

    /// Adds a label: a further place in the source with a message of its own.
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            message: message.into(),
        });
        self
    }

    /// Adds a note: a fact that explains the message.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Sets the hint "did you mean ...?" with the similar name `like`; changes nothing if `like` is `None`.
    pub fn suggest(self, like: Option<&str>) -> Diagnostic {
        match like {
            Some(name) => self.hint(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// Sets the hint, which tells the user how to correct the program.
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    /// Returns whether the diagnostic is an error rather than a warning.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Renders the diagnostic as text: the message, the source line with carets under the span, then
    /// labels, notes and the hint.
    pub fn render(&self, sources: &SourceMap) -> String {
        let mut out = String::new();
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let _ = writeln!(out, "{severity}[{}]: {}", self.code, self.message);
        let mut margin = snippet(&mut out, sources, self.span);
        for label in &self.labels {
            let _ = writeln!(out, "note: {}", label.message);
            margin = snippet(&mut out, sources, label.span);
        }
        if let Some(expansion) = sources.expansion(self.span) {
            let at = sources.location(expansion.definition);
            let (name, file, line) = (&expansion.macro_name, at.file, at.line);
            let _ = writeln!(
                out,
                "{margin} = note: in the expansion of `{name}`, defined at {file}:{line}"
            );
        }
        if let Some(include) = sources.file(self.span.file).and_then(|f| f.included_at) {
            let at = sources.location(include);
            let _ = writeln!(
                out,
                "{margin} = note: included from {}:{}",
                at.file, at.line
            );
        }
        for note in &self.notes {
            let _ = writeln!(out, "{margin} = note: {note}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "{margin} = hint: {hint}");
        }
        // Control characters of a program, or of a file's name, could command a terminal.
        let lines = out.lines().map(|line| {
            excerpt(line).replace(|c: char| c.is_control() && c != '\t', "\u{fffd}") + "\n"
        });
        lines.collect()
    }
}

/// Renders diagnostics as text, with a blank line between each two.
pub fn render_all(diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    diagnostics
        .iter()
        .map(|d| d.render(sources))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The longest line of source text, in characters, that is shown in full; machine-made programs have lines of
/// megabytes.
const MAX_LINE: usize = 140;

/// The longest line of a diagnostic, in characters, that is not cut; names can have megabytes.
const MOST_CHARACTERS: usize = 500;

/// Returns `line`. A line longer than [`MOST_CHARACTERS`] is cut to that length, and the number of
/// characters left out is appended.
fn excerpt(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(MOST_CHARACTERS) {
        None => line.into(),
        Some((end, _)) => {
            let more = line[end..].chars().count();
            format!("{}... ({more} more characters)", &line[..end]).into()
        }
    }
}

/// Appends to `out` the place, the source line and carets under the span. Returns blanks as wide as the
/// line number, with which the following lines begin.
fn snippet(out: &mut String, sources: &SourceMap, span: Span) -> String {
    let at = sources.location(span);
    let number = at.line.to_string();
    let margin = " ".repeat(number.len());
    let _ = writeln!(out, "{margin}--> {}:{}:{}", at.file, at.line, at.column);
    let (line_span, line) = sources.line(span);
    let before = at.column as usize - 1;
    let within = span.end.min(line_span.end).saturating_sub(span.start) as usize;
    let marked = sources
        .text(Span::new(span.file, span.start, span.start + within as u32))
        .chars()
        .count()
        .max(1);
    let skip = if before + marked > MAX_LINE {
        before.saturating_sub(MAX_LINE / 4)
    } else {
        0
    };
    let shown: Vec<char> = line.chars().skip(skip).take(MAX_LINE).collect();
    let text: String = shown.iter().collect();
    // Tabs stay tabs in both lines, so that the carets stand under the text whatever the tab width.
    let pad: String = shown
        .iter()
        .take(before - skip)
        .map(|c| if *c == '\t' { '\t' } else { ' ' })
        .collect();
    let missing = (before - skip).saturating_sub(shown.len());
    let carets = "^".repeat(marked.min(MAX_LINE));
    let _ = writeln!(out, "{margin} |");
    let _ = writeln!(out, "{}", format!("{number} | {text}").trim_end());
    let _ = writeln!(out, "{margin} | {pad}{}{carets}", " ".repeat(missing));
    margin
}
