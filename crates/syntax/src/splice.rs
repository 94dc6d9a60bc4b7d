//! Joins continued lines, before anything else reads the text (ISO C 5.1.1.2, phase 2).
//!
//! A backslash at the end of a line, with the line end, vanishes wherever it stands: in a name, a symbol, a string, a
//! comment, a directive. [`Spliced`] keeps the places of these cuts, so that each token still has its place in the file.
//! As in the reference compiler's preprocessor, blanks may follow the backslash, and the end of the file counts as a line end.

use std::borrow::Cow;

/// The characters that may stand between a backslash and the end of the line that it continues.
const BLANK: [char; 6] = [' ', '\t', '\u{b}', '\u{c}', '\0', '\r'];

/// A file's text in which continued lines are joined.
pub(crate) struct Spliced<'t> {
    /// The joined text.
    pub text: Cow<'t, str>,
    cuts: Vec<Cut>,
}

/// A place where lines were joined.
pub(crate) struct Cut {
    /// The position in the joined text.
    pub at: usize,
    /// The position of the backslash in the file.
    pub backslash: usize,
    /// The number of bytes removed here and before.
    removed: usize,
    /// True if blanks stood between the backslash and the line end.
    pub blanks: bool,
}

/// Joins each line of `text` that ends with a backslash with the line after it, and records the places of the joins.
pub(crate) fn splice(text: &str) -> Spliced<'_> {
    let mut joined = String::new();
    let mut cuts = Vec::new();
    let (mut copied, mut removed) = (0, 0);
    for (backslash, _) in text.match_indices('\\') {
        let Some((len, blanks)) = continuation(&text[backslash..]) else {
            continue;
        };
        joined.push_str(&text[copied..backslash]);
        copied = backslash + len;
        removed += len;
        cuts.push(Cut {
            at: joined.len(),
            backslash,
            removed,
            blanks,
        });
    }
    if cuts.is_empty() {
        return Spliced {
            text: Cow::Borrowed(text),
            cuts,
        };
    }
    joined.push_str(&text[copied..]);
    Spliced {
        text: Cow::Owned(joined),
        cuts,
    }
}

/// Returns `text` with its continued lines joined.
pub(crate) fn joined(text: &str) -> Cow<'_, str> {
    splice(text).text
}

/// Returns the first line of `text`, joined with the lines that continue it.
pub(crate) fn logical_line(text: &str) -> Cow<'_, str> {
    let ends = |(end, _): &(usize, &str)| {
        let line = &text[..*end];
        let backslash = line.trim_end_matches(BLANK).strip_suffix('\\');
        backslash.is_none()
    };
    let end = text.match_indices('\n').find(ends);
    joined(&text[..end.map_or(text.len(), |(end, _)| end)])
}

/// Returns the length in bytes of a backslash with the line end after it, at the start of `rest`, and whether there
/// are blanks between the two; `None` if the backslash does not end its line.
fn continuation(rest: &str) -> Option<(usize, bool)> {
    let after = &rest[1..];
    let trimmed = after.trim_start_matches(BLANK);
    let blanks = after[..after.len() - trimmed.len()].trim_end_matches('\r');
    match trimmed.strip_prefix('\n') {
        Some(next) => Some((rest.len() - next.len(), !blanks.is_empty())),
        None => trimmed.is_empty().then_some((rest.len(), false)),
    }
}

impl Spliced<'_> {
    /// Returns the position in the file of the start of a token that starts at `at` in the joined text.
    pub fn start(&self, at: usize) -> u32 {
        let before = self.cuts.partition_point(|cut| cut.at <= at);
        self.original(at, before)
    }

    /// Returns the position in the file of the end of a token that ends at `at` in the joined text.
    pub fn end(&self, at: usize) -> u32 {
        let before = self.cuts.partition_point(|cut| cut.at < at);
        self.original(at, before)
    }

    fn original(&self, at: usize, cuts_before: usize) -> u32 {
        let removed = cuts_before
            .checked_sub(1)
            .map_or(0, |last| self.cuts[last].removed);
        (at + removed) as u32
    }

    /// Returns the places at which lines were joined, in the order of the text.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }
}
