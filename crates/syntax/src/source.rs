//! Source files and places in them.
//!
//! A [`Span`] is small and `Copy`; only the [`SourceMap`] can turn it into file names, lines and text. It knows
//! neither the meaning of the text nor its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A file in a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileId(pub u32);

/// A range of bytes in one file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// Makes the range of the bytes `start..end` of `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span {
            file,
            start,
            end: end.max(start),
        }
    }

    /// Returns the range from the start of `self` to the end of `other`. If `other` is in another file or
    /// ends before `self`, returns `self`: a construct that starts in one file and ends in another is shown
    /// where it starts.
    pub fn to(self, other: Span) -> Span {
        if self.file == other.file && other.end >= self.start {
            Span::new(self.file, self.start, other.end)
        } else {
            self
        }
    }

    /// Returns the empty range directly after `self`.
    pub fn after(self) -> Span {
        Span::new(self.file, self.end, self.end)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}..{}", self.file.0, self.start, self.end)
    }
}

/// A line and column, both from 1; columns count characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The file's name, or the one a `#line` directive gave.
    pub file: Arc<str>,
    /// The line, or the one a `#line` directive gave.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// One loaded file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name to show.
    pub name: Arc<str>,
    /// The text.
    pub text: Arc<str>,
    /// The `#include` that loaded it; `None` for the program's own file.
    pub included_at: Option<Span>,
    line_starts: Vec<u32>,
    line_overrides: Vec<LineOverride>,
}

/// The effect of a `#line` directive: from the physical line `from_line` (from 0) on, lines are numbered from `line`
/// on.
#[derive(Clone, Debug)]
struct LineOverride {
    from_line: u32,
    line: u32,
    file: Option<Arc<str>>,
}

/// A macro use whose expansion has left tokens in the program.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// The place where the macro is used.
    pub site: Span,
    /// The macro's name.
    pub macro_name: Arc<str>,
    /// The place of the name in the macro's `#define`.
    pub definition: Span,
}

/// All files of one compilation.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    expansions: BTreeMap<(FileId, u32), Expansion>,
}

impl SourceMap {
    /// Creates a map without any files.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a file and returns its id; `included_at` is the place of the `#include` that names it.
    pub fn add(
        &mut self,
        name: impl Into<Arc<str>>,
        text: impl Into<Arc<str>>,
        included_at: Option<Span>,
    ) -> FileId {
        let text = text.into();
        let starts = text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(i, _)| i as u32 + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        let id = FileId(self.files.len() as u32);
        self.files.push(SourceFile {
            name: name.into(),
            text,
            included_at,
            line_starts,
            line_overrides: Vec::new(),
        });
        id
    }

    /// Returns the files in the order they were loaded.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Returns the file with the id `id`; `None` if this map has no such file.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// Returns the text of a span; empty if the span is not in a file of this map.
    pub fn text(&self, span: Span) -> &str {
        let text = self.file(span.file).map_or("", |f| &f.text);
        text.get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }

    /// Returns the file name, line and column (both from 1) at which a span starts, as changed by `#line` directives.
    pub fn location(&self, span: Span) -> Location {
        let Some(file) = self.file(span.file) else {
            return Location {
                file: "<unknown>".into(),
                line: 1,
                column: 1,
            };
        };
        let physical = file.line_of(span.start);
        let (start, _) = file.line_range(physical);
        let before = file
            .text
            .get(start as usize..span.start as usize)
            .unwrap_or("");
        let column = before.chars().count() as u32 + 1;
        let active = file
            .line_overrides
            .iter()
            .rev()
            .find(|o| o.from_line <= physical);
        let (name, line) = match active {
            Some(o) => {
                let line = o.line.saturating_add(physical - o.from_line);
                (o.file.clone().unwrap_or_else(|| file.name.clone()), line)
            }
            None => (file.name.clone(), physical + 1),
        };
        Location {
            file: name,
            line,
            column,
        }
    }

    /// Returns the line on which a span starts, without regard to `#line` directives: its range of bytes
    /// without the line end, and its text.
    pub fn line(&self, span: Span) -> (Span, &str) {
        let Some(file) = self.file(span.file) else {
            return (Span::default(), "");
        };
        let (start, end) = file.line_range(file.line_of(span.start));
        let line = Span::new(span.file, start, end);
        (line, self.text(line))
    }

    /// Returns the place of the line that has the file `name` and the number `line` in messages
    /// ([`SourceMap::location`]), without its leading blanks; `None` if there is no such line.
    pub fn span_of_line(&self, name: &str, line: u32) -> Option<Span> {
        let ids = (0..self.files.len() as u32).map(FileId);
        let mut starts = self.files.iter().zip(ids).flat_map(|(file, id)| {
            let starts = file.line_starts.iter();
            starts.map(move |start| Span::new(id, *start, *start))
        });
        let start = starts.find(|span| {
            let at = self.location(*span);
            at.line == line && &*at.file == name
        })?;
        let (whole, text) = self.line(start);
        let blanks = text.len() - text.trim_start().len();
        Some(Span::new(
            whole.file,
            whole.start + blanks as u32,
            whole.end,
        ))
    }

    /// Returns the macro expansion that produced the tokens at `span`; `None` if no macro did.
    pub fn expansion(&self, span: Span) -> Option<&Expansion> {
        self.expansions
            .get(&(span.file, span.start))
            .filter(|e| span.end <= e.site.end)
    }

    /// Returns all macro expansions that left tokens in the program, in the order of their places.
    pub fn expansions(&self) -> impl Iterator<Item = &Expansion> {
        self.expansions.values()
    }

    /// Records that a macro's expansion has replaced the text at `expansion.site`, unless an expansion is recorded
    /// there already.
    pub(crate) fn add_expansion(&mut self, expansion: Expansion) {
        self.expansions
            .entry((expansion.site.file, expansion.site.start))
            .or_insert(expansion);
    }

    /// Applies a `#line` directive at `at`: the next line gets the number `line`, and from there on the
    /// file the name `name`. Without `name`, the file keeps the name of an earlier directive.
    pub(crate) fn override_line(&mut self, at: Span, line: u32, name: Option<Arc<str>>) {
        let Some(file) = self.files.get_mut(at.file.0 as usize) else {
            return;
        };
        let from_line = file.line_of(at.start) + 1;
        let file_name = name.or_else(|| file.line_overrides.last().and_then(|o| o.file.clone()));
        file.line_overrides.push(LineOverride {
            from_line,
            line,
            file: file_name,
        });
    }
}

impl SourceFile {
    fn line_of(&self, offset: u32) -> u32 {
        (self.line_starts.partition_point(|start| *start <= offset) as u32).saturating_sub(1)
    }

    fn line_range(&self, line: u32) -> (u32, u32) {
        let start = self.line_starts.get(line as usize).copied().unwrap_or(0);
        let next = self.line_starts.get(line as usize + 1).copied();
        let mut end = next.map_or(self.text.len() as u32, |n| n - 1);
        if end > start && self.text.as_bytes().get(end as usize - 1) == Some(&b'\r') {
            end -= 1;
        }
        (start, end)
    }
}
