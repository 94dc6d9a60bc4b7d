//! The holes that errors leave in the tree.

use std::collections::BTreeSet;

use super::Parser;
use super::types::starts_base_type;
use crate::ast::{Broken, Damage, Decl, DeclKind, Hole, Program};
use crate::token::{Token, TokenKind as T};

/// A range of tokens, `start..end`, that could not be parsed and is missing in the tree; an empty range is an error
/// without missing tokens.
#[derive(Clone, Copy)]
pub(super) struct Gap {
    pub start: usize,
    pub end: usize,
}

impl Parser<'_> {
    /// Records that the tokens from index `start` to the current position could not be parsed, so that the syntax
    /// tree lacks them.
    pub(super) fn leave_gap(&mut self, start: usize) {
        let end = self.pos;
        self.gaps.push(Gap { start, end });
    }

    /// Records the whole item (a declaration or statement) from index `start` to the current position as missing from
    /// the tree, if a part of it was. `gaps` is the number of recorded gaps before the item was read.
    pub(super) fn doubt(&mut self, start: usize, gaps: usize) {
        if self.gaps.len() > gaps {
            self.leave_gap(start);
        }
    }

    /// Returns whether the numbers of `{` and `}` in the program are equal.
    fn braces_match(&self) -> bool {
        !self.lacks_close && !self.lacks_open
    }

    /// Describes what the tree lacks of the declaration from the token `start` to the current position; `None` if the
    /// declaration is complete. `gaps` and `errors` are the numbers of gaps and errors before the declaration was
    /// read, `before` are the declarations before it.
    pub(super) fn broken(
        &mut self,
        start: usize,
        (gaps, errors): (usize, usize),
        (damage, before): (&mut Damage, &[Decl]),
    ) -> Option<Broken> {
        let tokens = &self.tokens[start..self.pos];
        let is_cut = |t: &Token| t.kind == T::Str && self.cut_strings.contains(&t.span);
        let cut = (start..self.pos).filter(|i| is_cut(&tokens[*i - start]));
        // Text is missing behind a string without an end.
        let mut holes: Vec<Hole> = cut
            .map(|i| Hole {
                nameless: true,
                ..self.hole(self.statement_around(i), false)
            })
            .collect();
        holes.extend(self.gaps[gaps..].iter().map(|gap| self.hole(*gap, false)));
        let is_broken = self.sink.errors() > errors || !holes.is_empty();
        if !is_broken && !self.is_doubtful(start) {
            return None;
        }
        let unstructured = !self.braces_match();
        if unstructured {
            if !self.is_certain(start) && !self.unstructured {
                doubt_last(damage, before);
            }
            self.unstructured = true;
            let words = self.words(Gap {
                start,
                end: self.pos,
            });
            holes.push(Hole {
                span: self.token_index(start).span,
                words,
                nameless: false,
            });
        }
        Some(Broken {
            holes,
            unstructured,
        })
    }

    /// Returns whether the declaration at the token `start` may in truth be a part of an earlier declaration that
    /// ended too early, since braces before it do not match.
    fn is_doubtful(&mut self, start: usize) -> bool {
        self.unstructured &= !self.is_certain(start);
        self.unstructured
    }

    /// Returns whether the declaration at the token `start` begins with a word that is only allowed at the top level,
    /// so that no declaration can contain it.
    fn is_certain(&self, start: usize) -> bool {
        let mut kinds = self.tokens[start..].iter().map(|t| t.kind);
        let first = kinds.find(|k| *k != T::At);
        matches!(
            first,
            Some(
                T::Control
                    | T::Enum
                    | T::Extern
                    | T::Header
                    | T::HeaderUnion
                    | T::Package
                    | T::Parser
                    | T::Struct
                    | T::Typedef
            )
        )
    }

    /// Records the gaps between two top-level declarations as holes of the program: text in which declarations may be
    /// lost. `gaps` is the number of gaps before the first of them.
    pub(super) fn lose(&mut self, program: &mut Program, gaps: usize) {
        let strays = |gap: &Gap| {
            let first = self.token_index(gap.start).kind;
            gap.end > gap.start && !first.is_word() && first != T::At
        };
        let ended_early = !self.braces_match() && !self.unstructured;
        if ended_early || self.gaps[gaps..].iter().any(strays) {
            doubt_last(&mut program.damage, &program.decls);
        }
        self.unstructured |= ended_early;
        let holes = self.gaps[gaps..].iter().map(|gap| self.hole(*gap, true));
        let next = program.decls.len();
        program.damage.lost.extend(holes.map(|hole| (next, hole)));
    }

    fn words(&self, gap: Gap) -> BTreeSet<std::sync::Arc<str>> {
        let tokens = &self.tokens[gap.start..gap.end];
        let words = tokens.iter().filter(|t| t.kind.is_word());
        words.map(|t| t.text.clone()).collect()
    }

    /// Describes a gap in the tree: its place, its words, and whether it may declare a name that is not among these
    /// words. At the top level every gap may be a declaration. `top_level` is true for a gap outside of all
    /// declarations.
    pub(super) fn hole(&self, gap: Gap, top_level: bool) -> Hole {
        let Gap { mut start, mut end } = gap;
        let declares = top_level || self.may_declare(&self.tokens[start..end]);
        if !declares && end > start && !is_statement(&self.tokens[start..end]) {
            start = self.statement_before(start);
            if !self.token_index(end).line_start {
                end = self.statement_around(end).end.min(self.tokens.len());
            }
        }
        let tokens = &self.tokens[start..end];
        let span = match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => self.token_index(gap.start).span,
        };
        Hole {
            span,
            words: self.words(Gap { start, end }),
            nameless: declares && !tokens.is_empty() && !declares_name(tokens),
        }
    }

    /// Returns the range of the tokens of the statement that contains the token `index`.
    fn statement_around(&self, index: usize) -> Gap {
        let ends = |t: &Token| matches!(t.kind, T::Semi | T::LBrace | T::RBrace);
        let behind = self.tokens[index..].iter().position(ends);
        Gap {
            start: self.statement_before(index + 1),
            end: behind.map_or(index, |n| index + n) + 1,
        }
    }

    /// Returns the index of the first token of the statement that ends directly before the token `start`, since the
    /// tokens from `start` on may be the rest of that statement after a superfluous `;`.
    fn statement_before(&self, start: usize) -> usize {
        let ends = |t: &Token| matches!(t.kind, T::Semi | T::LBrace | T::RBrace);
        let before = &self.tokens[..start.saturating_sub(1)];
        before.iter().rposition(ends).map_or(start, |end| end + 1)
    }

    /// Returns whether the broken statement or local item `tokens` may have been a declaration.
    fn may_declare(&self, tokens: &[Token]) -> bool {
        let kind = |i: usize| tokens.get(i).map_or(T::Eof, |t| t.kind);
        match kind(0) {
            T::If
            | T::Else
            | T::Return
            | T::Exit
            | T::Switch
            | T::Transition
            | T::For
            | T::Break
            | T::Continue => false,
            T::Ident | T::This | T::Dot | T::Apply => {
                let name = usize::from(kind(0) == T::Dot);
                let is_type = tokens
                    .get(name)
                    .is_some_and(|t| self.scopes.is_type(&t.text));
                let next = kind(name + 1);
                let declarator = next.is_word() || matches!(next, T::Lt | T::Eof | T::Unknown);
                is_type || declarator
            }
            kind => kind.is_word() || kind == T::At || starts_base_type(kind) || tokens.len() < 3,
        }
    }
}

/// Records in `damage` that it is uncertain where the last declarations of `decls` end, since stray text after them may belong to one
/// of them: the last one that is always at the top level, such as a control, and those behind it; without such a one, all.
pub(super) fn doubt_last(damage: &mut Damage, decls: &[Decl]) {
    for (i, decl) in decls.iter().enumerate().rev() {
        damage.broken.entry(i).or_default().unstructured = true;
        let is_local = matches!(
            decl.kind,
            DeclKind::Const(_)
                | DeclKind::Action(_)
                | DeclKind::Function(_)
                | DeclKind::Instantiation(_)
                | DeclKind::Var(_)
        );
        if !is_local {
            break;
        }
    }
}

/// Returns whether `tokens` begin as a statement or declaration does, or contain an assignment.
fn is_statement(tokens: &[Token]) -> bool {
    let Some((first, rest)) = tokens.split_first() else {
        return false;
    };
    let second = rest.first().map_or(T::Eof, |t| t.kind);
    let is_name = matches!(first.kind, T::Ident | T::This);
    let assigns = || {
        rest.iter()
            .any(|t| t.text.ends_with('=') && t.kind != T::EqEq)
    };
    match is_name {
        true => second.is_word() || second == T::LParen || assigns(),
        false => first.kind.is_word() || first.kind == T::At,
    }
}

/// Returns whether `tokens` contain, outside of brackets, a name in the position of a declared name: after
/// a word or the end of a type, and before `=`, `;` or a bracket.
fn declares_name(tokens: &[Token]) -> bool {
    let end_of_type =
        |t: &Token| t.kind.is_word() || matches!(t.kind, T::Gt | T::RBracket | T::RParen);
    let behind = |t: &Token| matches!(t.kind, T::Assign | T::Semi | T::LParen | T::LBrace);
    // The name of an annotation stands like one.
    if tokens.first().is_some_and(|t| t.kind == T::At) {
        return false;
    }
    let mut depth = 0_usize;
    tokens.windows(3).any(|w| {
        depth = match w[0].kind {
            T::LParen | T::LBrace => depth + 1,
            T::RParen | T::RBrace => depth.saturating_sub(1),
            _ => depth,
        };
        depth == 0 && end_of_type(&w[0]) && w[1].kind.is_name() && behind(&w[2])
    })
}
