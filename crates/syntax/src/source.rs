//! Source files and places in them.
//!
//! A [`Span`] is small and `Copy`; only the [`SourceMap`] can turn it into file names, lines and text. Nothing here
//! knows what the text means or where it was loaded from.

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
    /// The bytes `start..end` of `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span {
            file,
            start,
            end: end.max(start),
        }
    }

    /// From the start of `self` to the end of `other`. Places in different files cannot be joined: the answer is then
    /// `self` (a construct that starts in one file and ends in another is shown where it starts).
    pub fn to(self, other: Span) -> Span {
        if self.file == other.file && other.end >= self.start {
            Span::new(self.file, self.start, other.end)
        } else {
            self
        }
    }

    /// The empty range just after `self`.
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
