//! A text with its lines, and positions in it as the protocol counts them.

use std::sync::Arc;

use lsp_types::{Position, Range, TextEdit};

/// The unit of columns, which client and server agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, which every client knows.
    Utf16,
}

/// A text and the starts of its lines.
#[derive(Clone, Debug)]
pub struct Text {
    text: Arc<str>,
    starts: Vec<usize>,
}

impl Text {
    /// Finds the lines of a text.
    pub fn new(text: impl Into<Arc<str>>) -> Text {
        let text: Arc<str> = text.into();
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(i, _)| i + 1)).collect();
        Text { text, starts }
    }

    /// Returns the whole text with its line ends.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text of a line, from 0, with its end; empty behind the last.
    pub fn line(&self, line: usize) -> &str {
        let Some(start) = self.starts.get(line) else {
            return "";
        };
        let end = self.starts.get(line + 1).copied();
        self.text
            .get(*start..end.unwrap_or(self.text.len()))
            .unwrap_or("")
    }

    /// Returns the byte at a position. A column behind the end of its line is the end of the line, and a line behind
    /// the last one is the end of the text.
    pub fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line) else {
            return self.text.len();
        };
        let content = self.line(line).trim_end_matches(['\n', '\r']);
        let mut column = 0;
        for (at, letter) in content.char_indices() {
            if column >= position.character as usize {
                return start + at;
            }
            column += width(letter, encoding);
        }
        start + content.len()
    }

    /// Returns the position of a byte. A byte behind the end is the end.
    pub fn position(&self, offset: usize, encoding: Encoding) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let line = line.saturating_sub(1);
        let before = self.text.get(self.starts[line]..offset).unwrap_or("");
        let column: usize = before.chars().map(|letter| width(letter, encoding)).sum();
        Position::new(line as u32, column as u32)
    }

    /// Returns the positions of the bytes `start..end`.
    pub fn range(&self, start: usize, end: usize, encoding: Encoding) -> Range {
        Range::new(self.position(start, encoding), self.position(end, encoding))
    }

    /// Returns the text with what is in `range` replaced by `new`.
    #[must_use]
    pub fn edited(&self, range: Range, new: &str, encoding: Encoding) -> Text {
        let start = self.offset(range.start, encoding);
        let end = self.offset(range.end, encoding).max(start);
        Text::new([&self.text[..start], new, &self.text[end..]].concat())
    }

    /// Returns the edits that make the text `after` of this one: at most one, for the lines from the first to the last that
    /// differ.
    pub fn edits_to(&self, after: &str, encoding: Encoding) -> Vec<TextEdit> {
        let old: Vec<&str> = self.text.split_inclusive('\n').collect();
        let new: Vec<&str> = after.split_inclusive('\n').collect();
        let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
            pairs.take_while(|(a, b)| a == b).count()
        };
        let front = same(&mut old.iter().zip(&new));
        let (old, new) = (&old[front..], &new[front..]);
        let back = same(&mut old.iter().rev().zip(new.iter().rev()));
        let length = |lines: &[&str]| lines.iter().map(|l| l.len()).sum::<usize>();
        let (old, new) = (&old[..old.len() - back], &new[..new.len() - back]);
        if old.is_empty() && new.is_empty() {
            return Vec::new();
        }
        let start = self.starts.get(front).copied().unwrap_or(self.text.len());
        let range = self.range(start, start + length(old), encoding);
        vec![TextEdit::new(range, new.concat())]
    }
}

fn width(letter: char, encoding: Encoding) -> usize {
    match encoding {
        Encoding::Utf8 => letter.len_utf8(),
        Encoding::Utf16 => letter.len_utf16(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_columns_in_the_agreed_unit() {
        let text = Text::new("a\n\u{1d11e}é.x\r\n");
        let at = text.as_str().find(".x").unwrap_or_default();
        for (encoding, column) in [(Encoding::Utf8, 6), (Encoding::Utf16, 3)] {
            let position = Position::new(1, column);
            assert_eq!(text.position(at, encoding), position);
            assert_eq!(text.offset(position, encoding), at);
        }
        let end = text.offset(Position::new(1, 99), Encoding::Utf16);
        assert_eq!(&text.as_str()[end..], "\r\n");
        assert_eq!(
            text.offset(Position::new(9, 0), Encoding::Utf16),
            text.as_str().len()
        );
    }

    #[test]
    fn edits_lead_to_the_other_text() {
        let texts = [
            "",
            "a\n",
            "a\nb\nc\n",
            "a\nc\n",
            "a\nb\nc",
            "x\na\nb\nc\n",
            "a\na\n",
        ];
        for (before, after) in texts.iter().flat_map(|a| texts.map(|b| (*a, b))) {
            let text = Text::new(before);
            let edits = text.edits_to(after, Encoding::Utf8);
            let edited = edits.iter().fold(text, |text, edit| {
                text.edited(edit.range, &edit.new_text, Encoding::Utf8)
            });
            assert_eq!(edited.as_str(), after, "from {before:?}");
            assert!(edits.is_empty() == (before == after));
        }
    }

    #[test]
    fn replaces_a_range() {
        let text = Text::new("one\ntwo\n");
        let range = Range::new(Position::new(0, 2), Position::new(1, 1));
        assert_eq!(text.edited(range, "-", Encoding::Utf16).as_str(), "on-wo\n");
        let turned = Range::new(Position::new(1, 1), Position::new(0, 2));
        assert_eq!(
            text.edited(turned, "", Encoding::Utf16).as_str(),
            text.as_str()
        );
    }
}
