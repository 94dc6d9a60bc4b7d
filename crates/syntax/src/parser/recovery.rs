//! Error recovery: finds matching brackets and the start of the next item.

use super::{Failed, Outcome, Parser};
use crate::errors;
use crate::source::Span;
use crate::token::{Token, TokenKind as T};

/// Returns for each opening bracket the index of its closing bracket (`None` for other tokens and for
/// brackets without a partner), and whether all brackets have partners.
///
/// A closing bracket closes the innermost open bracket of its own kind; other brackets opened after that
/// one have no partner. Round and square brackets have no partners across a brace.
pub(super) fn partners(tokens: &[Token]) -> (Vec<Option<u32>>, bool) {
    let mut partners = vec![None; tokens.len()];
    let mut open: Vec<(usize, T)> = Vec::new();
    let mut balanced = true;
    for (i, token) in tokens.iter().enumerate() {
        let closes = match token.kind {
            T::LParen | T::LBracket | T::LBrace => {
                open.push((i, token.kind));
                continue;
            }
            T::RParen => T::LParen,
            T::RBracket => T::LBracket,
            T::RBrace => T::LBrace,
            _ => continue,
        };
        let stop = |kind: &T| closes != T::LBrace && *kind == T::LBrace;
        let mut candidate = open.len();
        while candidate > 0 && open[candidate - 1].1 != closes && !stop(&open[candidate - 1].1) {
            candidate -= 1;
        }
        if candidate == 0 || open[candidate - 1].1 != closes {
            balanced = false;
            continue;
        }
        balanced &= candidate == open.len();
        partners[open[candidate - 1].0] = Some(i as u32);
        open.truncate(candidate - 1);
    }
    (partners, balanced && open.is_empty())
}

/// Returns whether a token of `kind` starts a declaration and can start nothing else.
pub(super) fn starts_declaration(kind: T) -> bool {
    use T::*;
    matches!(
        kind,
        Action
            | Control
            | Enum
            | Extern
            | Header
            | HeaderUnion
            | Package
            | Parser
            | Struct
            | Table
            | Typedef
    )
}

/// Returns whether a token of `kind` starts a statement and can start nothing else.
fn starts_statement(kind: T) -> bool {
    use T::*;
    matches!(
        kind,
        Break | Const | Continue | Exit | For | If | Return | Switch | Transition
    )
}

impl Parser<'_> {
    /// Skips the rest of the broken item (statement, declaration, field, ...) that began at the token `start`: up to
    /// and including its `;` or `{ ... }`. Stops earlier at the `}` of the surrounding list, and at a word at the
    /// start of a line that begins another item. Records the skipped tokens as missing from the tree.
    pub(super) fn skip_item(&mut self, start: usize) {
        self.skip(start);
        self.leave_gap(start);
    }

    fn skip(&mut self, start: usize) {
        let unclosed = match self.leave_brackets(start) {
            Ok(true) => return,
            Ok(false) => 0,
            Err(unclosed) => unclosed,
        };
        self.skip_to_end(start);
        self.close_braces(unclosed);
    }

    /// Skips tokens from the current position to the end of the item that began at `start`, as
    /// [`Parser::skip_item`] describes.
    fn skip_to_end(&mut self, start: usize) {
        loop {
            let token = self.token();
            let fresh = token.line_start && self.pos > start;
            match token.kind {
                T::Eof | T::RBrace => return,
                T::Semi => {
                    self.bump();
                    return;
                }
                kind if fresh
                    && (starts_declaration(kind) || starts_statement(kind) || kind == T::At) =>
                {
                    return;
                }
                T::LParen | T::LBracket | T::LBrace => match self.after_partner(self.pos) {
                    Some(after) => {
                        self.pos = after;
                        if token.kind == T::LBrace && self.body_ends_item() {
                            return;
                        }
                    }
                    None => {
                        self.bump();
                    }
                },
                _ => {
                    self.bump();
                }
            }
        }
    }

    /// Goes to the end of the outermost bracket that was opened after `start` and is still open at the
    /// current position. Returns whether the item ends with that bracket.
    ///
    /// # Errors
    ///
    /// The number of open braces, if the brackets of the program do not match and a semicolon stands before the
    /// bracket's end: its partner may then belong to another bracket.
    fn leave_brackets(&mut self, start: usize) -> Result<bool, usize> {
        let mut index = start;
        while index < self.pos {
            match self.after_partner(index) {
                Some(after) if after > self.pos => {
                    let between = &self.tokens[self.pos..after];
                    if !self.balanced && between.iter().take(100).any(|t| t.kind == T::Semi) {
                        return Err(self.open_braces(start));
                    }
                    let is_brace = self.token_index(index).kind == T::LBrace;
                    self.pos = after;
                    return Ok(is_brace && self.body_ends_item());
                }
                Some(after) => index = after,
                None => index += 1,
            }
        }
        Ok(false)
    }

    /// Counts the braces opened after `start` that are still open at the current position.
    fn open_braces(&self, start: usize) -> usize {
        self.tokens[start..self.pos]
            .iter()
            .fold(0, |open: usize, token| match token.kind {
                T::LBrace => open + 1,
                T::RBrace => open.saturating_sub(1),
                _ => open,
            })
    }

    /// Skips up to `unclosed` closing braces, with semicolons after them, that stand on the current line
    /// and so belong to a broken expression, as in `x = {1, {2; };`.
    fn close_braces(&mut self, mut unclosed: usize) {
        while unclosed > 0 && self.at(T::RBrace) && !self.token().line_start {
            self.bump();
            self.eat(T::Semi);
            unclosed -= 1;
        }
    }

    /// Returns whether the item ends with the `{ ... }` that has just been skipped. It does not if the next
    /// token continues an expression or statement.
    fn body_ends_item(&self) -> bool {
        let next = self.token();
        let ends_typedef = next.kind.is_name() && self.kind_at(1) == T::Semi;
        let starts_item =
            next.line_start || next.kind.is_word() || matches!(next.kind, T::At | T::RBrace);
        starts_item && next.kind != T::Else && !ends_typedef
    }

    /// Reads the items between braces with `item`, and skips broken items. `what` names the construct in
    /// the message about a missing closing brace.
    pub(super) fn braced_items<R>(
        &mut self,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Outcome<R>,
    ) -> Outcome<Vec<R>> {
        let open = self.open_brace()?;
        let mut items = Vec::new();
        self.bracketed(|p| {
            while !p.closes(open, what) {
                let start = p.pos;
                match item(p) {
                    Ok(item) => items.push(item),
                    Err(Failed) => p.skip_item(start),
                }
                p.progress(start);
            }
        });
        Ok(items)
    }

    /// Returns whether the list in braces that was opened at `open` ends at the current token. Reads its closing
    /// brace, or reports that it is missing.
    pub(super) fn closes(&mut self, open: Span, what: &str) -> bool {
        if self.eat(T::RBrace) {
            return true;
        }
        let missing = self.at(T::Eof)
            || (!self.balanced && self.token().line_start && self.starts_outer_item(what));
        if missing {
            self.report(errors::unclosed_brace(self.span(), what, open));
        }
        missing
    }

    /// Returns whether the current token starts a declaration that cannot stand inside of `what` (such as "control"),
    /// so that a `}` of `what` is probably missing before it.
    fn starts_outer_item(&self, what: &str) -> bool {
        let state = self.at(T::State) && self.kind_at(1).is_name() && self.kind_at(2) == T::LBrace;
        match what {
            "control" => {
                starts_declaration(self.kind()) && !matches!(self.kind(), T::Action | T::Table)
            }
            "parser" => starts_declaration(self.kind()),
            // The next property of the table.
            "key" | "list of actions" | "list of entries" => {
                let name = usize::from(self.at(T::Const));
                self.kind_at(name).is_name()
                    && self.kind_at(name) != T::Priority
                    && self.kind_at(name + 1) == T::Assign
            }
            _ => {
                let apply = self.at(T::Apply) && self.kind_at(1) == T::LBrace;
                starts_declaration(self.kind()) || state || apply
            }
        }
    }

    /// Skips the current token if none was read since the position `start`. Otherwise the loop of the caller would
    /// not end.
    pub(super) fn progress(&mut self, start: usize) {
        if self.pos == start {
            self.bump();
        }
    }
}
