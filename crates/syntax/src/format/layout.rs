//! The indentation of lines, and the text that they become.
//!
//! A line that begins a statement has the indentation of its block. A line that continues one keeps its distance to the
//! beginning of the statement, or stands below what is behind an open bracket.

use super::lines::{Line, Piece, columns};
use super::width;
use crate::token::TokenKind as T;

/// The columns by which the contents of a block are set off.
const STEP: usize = 4;

/// The column of a line, and whether a statement begins there.
#[derive(Clone, Copy)]
pub(super) struct Placed {
    /// The column of its first token or comment.
    pub indent: usize,
    /// True if a statement, declaration or member begins with it.
    pub starts_statement: bool,
}

#[derive(Clone)]
enum Open {
    /// Braces around statements, declarations or members; the indentation of the statement that they belong to.
    Block(usize),
    /// Other brackets: the column of what is behind the bracket on its line, in the file and now.
    Group {
        inner: Option<(usize, usize)>,
        of_annotation: bool,
        of_condition: bool,
    },
}

/// The state on which the indentation of a line depends.
#[derive(Clone)]
struct State {
    open: Vec<Open>,
    last: Option<T>,
    /// True if the next token begins a statement.
    at_start: bool,
    /// The indentation of the current statement, and by how much its first line has moved.
    statement: usize,
    moved: isize,
    /// True if a condition or `else` is complete, so that the next token begins a statement within the statement.
    after_condition: bool,
    /// The last token if it is `@`, or the name behind it.
    annotation: Option<T>,
    /// True from `@pragma` to the end of its line.
    pragma: bool,
    /// True from `if`, `for` or `switch` to its bracket.
    awaits_condition: bool,
}

/// Returns where each line stands.
pub(super) fn place(lines: &[Line]) -> Vec<Placed> {
    let mut state = State {
        open: Vec::new(),
        last: None,
        at_start: true,
        statement: 0,
        moved: 0,
        after_condition: false,
        annotation: None,
        pragma: false,
        awaits_condition: false,
    };
    // The states at the beginning of each `#if`, and at the end of its first branch.
    let mut branches: Vec<(State, Option<State>)> = Vec::new();
    let mut placed = Vec::new();
    for line in lines {
        let here = match line {
            Line::Code(pieces) => state.line(pieces),
            Line::Directive(text) => {
                branch(text, &mut state, &mut branches);
                Placed {
                    indent: 0,
                    starts_statement: false,
                }
            }
            Line::Blank => Placed {
                indent: 0,
                starts_statement: false,
            },
        };
        placed.push(here);
    }
    placed
}

/// Follows a conditional directive: every branch begins as the first one does, and behind them it goes on as behind the
/// first one.
fn branch(text: &str, state: &mut State, branches: &mut Vec<(State, Option<State>)>) {
    let word = text.trim_start().trim_start_matches('#').trim_start();
    let end = word.find(|c: char| !c.is_ascii_alphabetic());
    match &word[..end.unwrap_or(word.len())] {
        "if" | "ifdef" | "ifndef" => branches.push((state.clone(), None)),
        "else" | "elif" | "elifdef" | "elifndef" => {
            if let Some((begin, first)) = branches.last_mut() {
                first.get_or_insert_with(|| state.clone());
                *state = begin.clone();
            }
        }
        "endif" => {
            if let Some((_, Some(first))) = branches.pop() {
                *state = first;
            }
        }
        _ => {}
    }
}

impl State {
    /// Places a line, and follows its tokens.
    fn line(&mut self, pieces: &[Piece]) -> Placed {
        let first = pieces.iter().find_map(|p| p.kind);
        let column = pieces.first().map_or(0, |p| p.column);
        let begins = self.begins_statement(first);
        let indent = match begins {
            true => {
                self.statement = self.block_indent(first);
                self.moved = self.statement as isize - column as isize;
                self.statement
            }
            false => self.continuation(first, column),
        };
        let mut at = indent;
        for (i, piece) in pieces.iter().enumerate() {
            at += if i > 0 { piece.gap } else { 0 };
            if let Some(kind) = piece.kind {
                let next = pieces.get(i + 1);
                let inner = next.map(|next| {
                    let gap = if matches!(kind, T::LBrace) {
                        next.gap
                    } else {
                        0
                    };
                    (next.column, at + width(&piece.text) + gap)
                });
                self.token(kind, &piece.text, inner);
            }
            at += width(&piece.text);
        }
        if std::mem::take(&mut self.pragma) {
            self.at_start = true;
        }
        Placed {
            indent,
            starts_statement: begins,
        }
    }

    /// Returns whether a line whose first token is `first` begins a statement.
    fn begins_statement(&self, first: Option<T>) -> bool {
        let annotated = match first {
            Some(T::LParen | T::LBracket) => false,
            _ => matches!(self.annotation, Some(kind) if kind != T::At),
        };
        let closes = first == Some(T::RBrace) && matches!(self.open.last(), Some(Open::Block(_)));
        self.at_start || annotated || closes
    }

    /// Returns the indentation of a statement that begins now, or of the end of its block if `first` is a brace.
    fn block_indent(&self, first: Option<T>) -> usize {
        let block = self.open.iter().rev().find_map(|open| match open {
            Open::Block(base) => Some(*base),
            Open::Group { .. } => None,
        });
        match (block, first) {
            (None, _) => 0,
            (Some(base), Some(T::RBrace)) => base,
            (Some(base), _) => base + STEP,
        }
    }

    /// Returns the indentation of a line that continues a statement and has the column `column` in the file.
    fn continuation(&mut self, first: Option<T>, column: usize) -> usize {
        if first == Some(T::LBrace) && !matches!(self.open.last(), Some(Open::Group { .. })) {
            return self.statement;
        }
        if self.after_condition && first.is_some() {
            self.statement += STEP;
            self.moved = self.statement as isize - column as isize;
            return self.statement;
        }
        let moved = column.saturating_add_signed(self.moved);
        match self.open.last() {
            Some(Open::Group {
                inner: Some((from, to)),
                ..
            }) if *from == column => *to,
            _ if matches!(first, Some(T::RParen | T::RBracket | T::RBrace)) => {
                moved.max(self.statement)
            }
            Some(Open::Group { .. }) => moved.max(self.statement + STEP),
            _ if self.last == Some(T::Assign) => moved.max(self.statement + STEP),
            _ => moved.max(self.statement),
        }
    }

    /// Follows a token. `inner` is the column of what is behind it on its line, in the file and now.
    fn token(&mut self, kind: T, text: &str, inner: Option<(usize, usize)>) {
        let was_annotation = self.annotation.take();
        let after_condition = std::mem::take(&mut self.after_condition);
        let at_start = std::mem::take(&mut self.at_start);
        match kind {
            T::LParen | T::LBracket => {
                let of_annotation = was_annotation.is_some_and(|k| k != T::At);
                let of_condition = std::mem::take(&mut self.awaits_condition);
                self.open.push(Open::Group {
                    inner,
                    of_annotation,
                    of_condition,
                });
            }
            T::LBrace => self.open_brace(inner),
            T::RParen | T::RBracket => self.close_group(),
            T::RBrace => self.close_brace(),
            T::Semi | T::Comma => {
                self.at_start = !matches!(self.open.last(), Some(Open::Group { .. }))
            }
            T::If | T::For | T::Switch => self.awaits_condition = true,
            T::Else => self.after_condition = true,
            T::At if at_start || was_annotation.is_some() => self.annotation = Some(T::At),
            _ => {}
        }
        if was_annotation == Some(T::At) {
            self.annotation = Some(kind);
            self.pragma = text == "pragma";
        }
        // `else if` is one.
        self.after_condition |= after_condition && kind == T::At;
        self.last = Some(kind);
    }

    /// Opens braces: a block, or an initialiser that begins on the line of its brace.
    fn open_brace(&mut self, inner: Option<(usize, usize)>) {
        let in_group = matches!(self.open.last(), Some(Open::Group { .. }));
        let of_value = self.last.is_none_or(|last| {
            !last.is_word() && !matches!(last, T::RParen | T::RBrace | T::Semi | T::Gt | T::LBrace)
        });
        let is_group = in_group || (of_value && inner.is_some() && self.last.is_some());
        self.open.push(match is_group {
            true => Open::Group {
                inner,
                of_annotation: false,
                of_condition: false,
            },
            false => Open::Block(self.statement),
        });
        self.at_start = !is_group;
    }

    fn close_group(&mut self) {
        if let Some(Open::Group {
            of_annotation,
            of_condition,
            ..
        }) = self.open.last()
        {
            self.at_start = *of_annotation;
            self.after_condition = *of_condition;
            self.open.pop();
        }
    }

    fn close_brace(&mut self) {
        if let Some(Open::Block(base)) = self.open.pop() {
            self.at_start = true;
            self.statement = base;
        }
    }
}

/// Returns the text of the lines in their places. At most one empty line stands between two lines, and none at the ends or
/// before a closing brace.
pub(super) fn write(lines: &[Line], placed: &[Placed]) -> String {
    let mut out = String::new();
    let mut blank = false;
    for (line, place) in lines.iter().zip(placed) {
        let text = match line {
            Line::Blank => {
                blank = !out.is_empty();
                continue;
            }
            Line::Directive(text) => text.clone(),
            Line::Code(pieces) => code(pieces, place.indent),
        };
        if std::mem::take(&mut blank) && !text.trim_start().starts_with('}') {
            out.push('\n');
        }
        out.push_str(&text);
        out.push('\n');
    }
    out
}

fn code(pieces: &[Piece], indent: usize) -> String {
    let mut out = " ".repeat(indent);
    let mut at = indent;
    for (i, piece) in pieces.iter().enumerate() {
        let gap = if i > 0 { piece.gap } else { 0 };
        out.push_str(&" ".repeat(gap));
        at += gap;
        match piece.kind {
            None => out.push_str(&comment(&piece.text, at as isize - piece.column as isize)),
            Some(_) => out.push_str(&piece.text),
        }
        at += width(&piece.text);
    }
    out
}

/// Returns a comment whose first line has moved by `moved` columns, with the others moved as far.
fn comment(text: &str, moved: isize) -> String {
    let mut lines = text.split('\n');
    let mut out = lines.next().unwrap_or("").trim_end().to_string();
    for line in lines {
        let content = line.trim();
        out.push('\n');
        if !content.is_empty() {
            let column = columns(&line[..line.len() - line.trim_start().len()]);
            out.push_str(&" ".repeat(column.saturating_add_signed(moved)));
            out.push_str(content);
        }
    }
    out
}
