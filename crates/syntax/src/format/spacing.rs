//! The blanks between the tokens of a line.
//!
//! Where the tokens alone do not tell what an operator is, such as `<`, and where styles differ, as behind a cast, a blank
//! stays if the author has written one.

use super::lines::{Line, Piece};
use crate::token::TokenKind as T;

/// Sets the blanks between the tokens and comments of all lines.
pub(super) fn apply(lines: &mut [Line]) {
    let mut context = Context::default();
    for line in lines {
        let Line::Code(pieces) = line else { continue };
        for at in 0..pieces.len() {
            let Some(kind) = pieces[at].kind else {
                continue;
            };
            if at > 0 && pieces[at - 1].kind.is_some() {
                pieces[at].gap = context.gap(&pieces[at]);
            }
            context.pass(kind, &pieces[at], pieces.get(at + 1));
        }
    }
}

/// The tokens before a place, as far as blanks depend on them.
#[derive(Default)]
struct Context {
    /// The last token, and whether it is an operator with one operand.
    last: Option<(T, bool)>,
    /// The brackets that are open, with the number of `?` in each that wait for their `:`.
    open: Vec<(T, usize)>,
    /// The token before the last one.
    before_last: Option<T>,
    /// The number of open brackets in an annotation. Programs for the control plane have the text in them.
    in_annotation: usize,
    /// True if the last `>` ended the arguments of a type of the language, such as `bit<8>`.
    ended_type: bool,
}

impl Context {
    /// Returns the blanks before the token `next`, which stands on the same line as the last token.
    fn gap(&self, next: &Piece) -> usize {
        let Some((last, is_unary)) = self.last else {
            return 0;
        };
        let Some(kind) = next.kind else { return 1 };
        let written = next.written.min(1);
        let in_slice = self
            .open
            .last()
            .is_some_and(|(bracket, _)| *bracket == T::LBracket);
        let in_type = self
            .open
            .last()
            .is_some_and(|(bracket, _)| *bracket == T::Lt);
        if self.in_annotation > 0 {
            return written;
        }
        match (last, kind) {
            (T::LBrace, _) | (_, T::RBrace) => match (last, kind) {
                (T::LParen | T::LBracket, _) => 0,
                _ => written,
            },
            (_, T::Semi | T::Comma | T::RParen | T::RBracket | T::Dot) => 0,
            (T::LParen | T::LBracket | T::Dot | T::At, _) => 0,
            // Two of them could become another token.
            (_, T::Plus | T::Minus) if is_unary => written,
            _ if is_unary => 0,
            (a, b) if in_slice && (is_operator(a) || is_operator(b)) => written,
            (_, T::Colon) if in_slice => written,
            (T::Colon, _) if in_slice => written,
            (_, T::Colon) => usize::from(self.in_condition()),
            (T::Comma | T::Semi | T::Colon, _) => 1,
            (_, T::LParen) => match last {
                T::If | T::Switch | T::For | T::Return | T::In => 1,
                T::Ident | T::Select | T::Apply | T::Key | T::Actions | T::State => 0,
                _ if is_operator(last) => 1,
                _ => written,
            },
            (_, T::Lt) if is_generic(last) => 0,
            (T::Lt, _) | (_, T::Gt) if in_type => 0,
            (T::Gt, b) if self.ended_type && (b.is_word() || b == T::At) => 1,
            (_, T::LBracket | T::Lt | T::Gt) | (T::Lt | T::Gt, _) => written,
            (_, T::LBrace) | (T::RBrace, _) => 1,
            _ if is_operator(last) || is_operator(kind) => 1,
            (a, b) if a.is_word() && b.is_word() => 1,
            (T::RParen | T::RBracket, b) if b.is_word() => written.max(usize::from(b == T::Else)),
            _ => written,
        }
    }

    fn in_condition(&self) -> bool {
        self.open.last().is_some_and(|(_, waiting)| *waiting > 0)
    }

    /// Takes note of a token; `next` stands behind it on its line.
    fn pass(&mut self, kind: T, piece: &Piece, next: Option<&Piece>) {
        if self.open.is_empty() {
            self.open.push((T::Eof, 0));
        }
        self.follow_annotation(kind);
        let before = self.last.map(|(last, _)| last);
        let ends_value = before.is_some_and(|last| {
            let word = last.is_value_name() || matches!(last, T::This | T::True | T::False);
            word || matches!(last, T::Int | T::Str | T::RParen | T::RBracket | T::RBrace)
        });
        // Behind a bracket that may be a cast, the blanks of the author tell.
        let may_be_cast = matches!(before, Some(T::RParen | T::Gt));
        let is_close = next.is_some_and(|next| next.written == 0);
        let is_unary = match kind {
            T::Not | T::Tilde => true,
            T::Minus | T::Plus if may_be_cast => piece.written > 0 && is_close,
            T::Minus | T::Plus => !ends_value,
            _ => false,
        };
        match kind {
            T::LParen | T::LBracket | T::LBrace => self.open.push((kind, 0)),
            T::Lt if before.is_some_and(is_generic) => self.open.push((kind, 0)),
            T::Gt => {
                let is_end = |(bracket, _): &(T, usize)| *bracket == T::Lt;
                self.ended_type = self.open.pop_if(|open| is_end(open)).is_some();
            }
            T::RParen | T::RBracket | T::RBrace if self.open.len() > 1 => {
                self.open.pop();
            }
            T::Question => self.count(|waiting| waiting + 1),
            T::Colon => self.count(|waiting| waiting.saturating_sub(1)),
            T::Semi => self.count(|_| 0),
            _ => {}
        }
        self.last = Some((kind, is_unary));
    }

    fn follow_annotation(&mut self, kind: T) {
        let begins = self.before_last == Some(T::At);
        match kind {
            T::LParen | T::LBracket if begins || self.in_annotation > 0 => self.in_annotation += 1,
            T::RParen | T::RBracket => self.in_annotation = self.in_annotation.saturating_sub(1),
            _ => {}
        }
        self.before_last = self.last.map(|(last, _)| last);
    }

    fn count(&mut self, change: impl FnOnce(usize) -> usize) {
        if let Some((_, waiting)) = self.open.last_mut() {
            *waiting = change(*waiting);
        }
    }
}

/// Returns whether a token is a type of the language that can have arguments.
fn is_generic(kind: T) -> bool {
    matches!(
        kind,
        T::Bit | T::Varbit | T::IntWord | T::Tuple | T::List | T::ValueSet
    )
}

/// Returns whether a token is an operator between two operands, or an assignment, and nothing else.
fn is_operator(kind: T) -> bool {
    use T::*;
    matches!(
        kind,
        SatAddAssign
            | SatSubAssign
            | Mask
            | ShlAssign
            | SatAdd
            | Range
            | Shl
            | And
            | Or
            | EqEq
            | Ne
            | Ge
            | Le
            | Concat
            | AddAssign
            | SubAssign
            | MulAssign
            | DivAssign
            | ModAssign
            | AndAssign
            | OrAssign
            | XorAssign
            | PlusColon
            | Plus
            | Minus
            | Star
            | Slash
            | Percent
            | Pipe
            | Amp
            | Caret
            | Question
            | Assign
    )
}
