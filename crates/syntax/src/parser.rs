//! Parses tokens into a tree, by recursive descent.
//!
//! A function that cannot make its node reports the reason and returns [`Failed`]. The nearest list of
//! statements, declarations, fields, ... skips to the apparent start of its next item and continues, so that one mistake
//! gives one message. Nothing is reported twice at one token.
//!
//! The parser looks up names for one purpose only: to distinguish a type from a value in `a < b` and
//! `(a) b`, where the grammar cannot. Later passes do everything else with names.
//!
//! Trees are bounded in height, so that neither this parser nor the passes after it can run out of stack: nesting by a
//! limit on recursion, chains such as `a + b + c + ...`, which need no recursion here, by a limit on their length.

mod annotation;
mod decl;
mod expr;
mod holes;
mod recovery;
mod stmt;
mod table;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Name, Path, Program};
use crate::diagnostics::Diagnostic;
use crate::errors;
use crate::sink::Sink;
use crate::source::Span;
use crate::token::{Token, TokenKind as T};

/// The deepest nesting of constructs.
const MAX_DEPTH: usize = 200;
/// The greatest height that chains of operators may add to the tree.
const MAX_CHAIN: usize = 500;

/// The error of a node that could not be parsed, which has been reported already.
struct Failed;

type Outcome<R> = Result<R, Failed>;

/// Parses a program from tokens that end with an end marker. `cut_strings` are strings without an end,
/// after which text is missing.
pub(crate) fn parse(tokens: &[Token], cut_strings: &[Span], sink: &mut Sink) -> Program {
    let mut parser = Parser::new(tokens, sink);
    parser.cut_strings = cut_strings;
    parser.program()
}

/// The names in scope, each with whether it is a type.
struct Scopes {
    stack: Vec<HashMap<Arc<str>, bool>>,
}

impl Scopes {
    fn is_type(&self, name: &str) -> bool {
        self.lookup(name) == Some(true)
    }

    fn lookup(&self, name: &str) -> Option<bool> {
        self.stack
            .iter()
            .rev()
            .find_map(|scope| scope.get(name).copied())
    }

    fn declare(&mut self, name: &Name, is_type: bool) {
        if let Some(scope) = self.stack.last_mut() {
            scope.insert(name.text.clone(), is_type);
        }
    }
}

struct Parser<'t> {
    tokens: &'t [Token],
    pos: usize,
    sink: &'t mut Sink,
    /// For each opening bracket, the index of the token that closes it; `None` if it is not closed.
    partners: Vec<Option<u32>>,
    /// True if every bracket is closed.
    balanced: bool,
    /// The number of `{` that may still be assumed to be missing where one is expected: at first, how many more `}`
    /// than `{` there are.
    missing_opens: usize,
    /// True if there are more `{` than `}`.
    lacks_close: bool,
    /// True if there are more `}` than `{`.
    lacks_open: bool,
    /// The tokens that could not be parsed so far.
    gaps: Vec<holes::Gap>,
    /// The strings without a closing quote.
    cut_strings: &'t [Span],
    /// True if braces do not match and, since then, no declaration has begun that is allowed at the top level only.
    unstructured: bool,
    scopes: Scopes,
    depth: usize,
    /// The height that chains of operators have added to the tree of the present expression so far.
    chain: usize,
    /// The position of the last error, so that no second one is reported there.
    last_error: Option<usize>,
    /// True if the rest of the program is not parsed.
    aborted: bool,
    /// True if `>` ends the expression being read, as in `bit<W>`.
    gt_closes: bool,
    /// True if the statements being parsed belong to a parser state.
    in_state: bool,
}

impl<'t> Parser<'t> {
    fn new(tokens: &'t [Token], sink: &'t mut Sink) -> Parser<'t> {
        let (partners, balanced) = recovery::partners(tokens);
        let count = |kind| tokens.iter().filter(|t| t.kind == kind).count();
        let (opens, closes) = (count(T::LBrace), count(T::RBrace));
        Parser {
            tokens,
            pos: 0,
            sink,
            partners,
            balanced,
            missing_opens: closes.saturating_sub(opens),
            lacks_close: opens > closes,
            lacks_open: closes > opens,
            gaps: Vec::new(),
            cut_strings: &[],
            unstructured: false,
            scopes: Scopes {
                stack: vec![HashMap::new()],
            },
            depth: 0,
            chain: 0,
            last_error: None,
            aborted: false,
            gt_closes: false,
            in_state: false,
        }
    }

    // -- Looking at tokens --------------------------------------------------------------------------------------------

    fn token(&self) -> &'t Token {
        self.token_at(0)
    }

    /// Returns the token `ahead` tokens after the current one; the end marker if there are fewer tokens.
    fn token_at(&self, ahead: usize) -> &'t Token {
        self.token_index(self.pos + ahead)
    }

    fn token_index(&self, index: usize) -> &'t Token {
        &self.tokens[index.min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> T {
        self.token().kind
    }

    fn kind_at(&self, ahead: usize) -> T {
        self.token_at(ahead).kind
    }

    fn at(&self, kind: T) -> bool {
        self.kind() == kind
    }

    /// Returns the index of the token after the bracket that closes the bracket at `index`; `None` if no
    /// bracket closes it.
    fn after_partner(&self, index: usize) -> Option<usize> {
        self.partners
            .get(index)
            .copied()
            .flatten()
            .map(|partner| partner as usize + 1)
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// Returns the place of the token that was read last.
    fn last_span(&self) -> Span {
        self.token_index(self.pos.saturating_sub(1)).span
    }

    /// Returns the range from `start` to the token that was read last.
    fn since(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    // -- Taking tokens ------------------------------------------------------------------------------------------------

    /// Returns the current token and moves to the next one. The end marker stays the current token.
    fn bump(&mut self) -> &'t Token {
        let token = self.token();
        if token.kind != T::Eof {
            self.pos += 1;
        }
        token
    }

    fn eat(&mut self, kind: T) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: T) -> Outcome<Span> {
        if self.at(kind) {
            Ok(self.bump().span)
        } else {
            Err(self.expected(kind.describe()))
        }
    }

    /// Reads a `{` and returns its place. Reports a missing `{`; if the program has more `}` than `{`,
    /// continues as if the `{` were there, so that the text after it is read correctly.
    fn open_brace(&mut self) -> Outcome<Span> {
        if self.at(T::LBrace) || !self.lacks_open_brace() {
            return self.expect(T::LBrace);
        }
        self.missing_opens -= 1;
        let Failed = self.expected("`{`");
        Ok(self.last_span().after())
    }

    /// Returns whether the program has fewer `{` than `}` and one is probably missing before the current token.
    fn lacks_open_brace(&self) -> bool {
        self.missing_opens > 0 && !matches!(self.kind(), T::LBrace | T::RBrace | T::Semi | T::Eof)
    }

    /// Reads a name where one is declared or selected. Reports any other token, including a keyword, with
    /// `what` as the expected construct.
    fn name(&mut self, what: &str) -> Outcome<Name> {
        if self.kind().is_name() {
            let token = self.bump();
            return Ok(Name {
                text: token.text.clone(),
                span: token.span,
            });
        }
        if self.kind().is_keyword() && !self.at(T::Underscore) {
            let (span, text) = (self.span(), self.token().text.clone());
            return Err(self.fail(errors::keyword_as_name(span, &text, what)));
        }
        Err(self.expected(what))
    }

    /// Reads `name` or `.name`, which refers to a declaration. Reports any other token, with `what` as the
    /// expected construct.
    fn path(&mut self, what: &str) -> Outcome<Path> {
        let start = self.span();
        let absolute = self.eat(T::Dot);
        let name = self.name(what)?;
        Ok(Path {
            absolute,
            span: start.to(name.span),
            name,
        })
    }

    /// Reads a semicolon. Reports a semicolon missing at the end of a line, and continues as if it were there.
    fn semi(&mut self, after: &str) -> Outcome<()> {
        if self.eat(T::Semi) {
            return Ok(());
        }
        let ends_line = self.token().line_start || matches!(self.kind(), T::RBrace | T::Eof);
        if ends_line && !self.at(T::Unknown) {
            let span = self.last_span().after();
            self.report(errors::missing_semicolon(span, after));
            return Ok(());
        }
        Err(self.expected("`;`"))
    }

    // -- Reporting ----------------------------------------------------------------------------------------------------

    /// Reports an error after which the current construct can still be read. Reports at most one error for each
    /// token, and none after the parser has given up.
    fn report(&mut self, diagnostic: Diagnostic) {
        if !self.aborted && self.last_error != Some(self.pos) {
            self.last_error = Some(self.pos);
            self.leave_gap(self.pos);
            self.sink.push(diagnostic);
        }
    }

    fn fail(&mut self, diagnostic: Diagnostic) -> Failed {
        self.report(diagnostic);
        Failed
    }

    /// Reports that `what` was expected in place of the current token.
    fn expected(&mut self, what: &str) -> Failed {
        let token = self.token();
        let diagnostic = match token.kind {
            T::Unknown => errors::unexpected_character(token.span, &token.text),
            T::Eof => errors::expected(token.span, what, "the end of the file"),
            T::Str => errors::expected(token.span, what, "a string"),
            _ => errors::expected(token.span, what, &format!("`{}`", token.text)),
        };
        let diagnostic = match (what, token.kind) {
            ("`)`", T::Assign) => diagnostic.hint("to compare, write `==`"),
            _ => diagnostic,
        };
        self.fail(diagnostic)
    }

    // -- Nesting ------------------------------------------------------------------------------------------------------

    /// Runs `read` one nesting level deeper. Reports nesting beyond `MAX_DEPTH`, and then gives up on the rest of the
    /// program.
    fn deeper<R>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<R>) -> Outcome<R> {
        if self.depth >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Counts one more link of a chain such as `a.b.c`. Reports a chain longer than `MAX_CHAIN`, and then gives up on
    /// the rest of the program.
    fn link(&mut self) -> Outcome<()> {
        self.chain += 1;
        if self.chain > MAX_CHAIN {
            Err(self.too_deep())
        } else {
            Ok(())
        }
    }

    /// Reports that the program is nested too deeply, and moves to its end. Otherwise each level of nesting that the
    /// parser leaves would report the same error.
    fn too_deep(&mut self) -> Failed {
        let failed = self.fail(errors::too_deep(self.span()));
        self.aborted = true;
        self.pos = self.tokens.len() - 1;
        failed
    }

    /// Runs `read` in a mode in which `>` is an operator, for text in brackets, where `>` does not end type arguments
    /// outside.
    fn bracketed<R>(&mut self, read: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.gt_closes, false);
        let result = read(self);
        self.gt_closes = outer;
        result
    }

    /// Runs `read` in a new scope, and forgets the names declared in it afterwards.
    fn scoped<R>(&mut self, read: impl FnOnce(&mut Self) -> R) -> R {
        self.scopes.stack.push(HashMap::new());
        let result = read(self);
        self.scopes.stack.pop();
        result
    }

    // -- Lists --------------------------------------------------------------------------------------------------------

    /// Reads items separated by commas, up to but not including `close`. If `trailing_comma`, a comma may follow the
    /// last item.
    fn comma_list<R>(
        &mut self,
        close: T,
        trailing_comma: bool,
        mut item: impl FnMut(&mut Self) -> Outcome<R>,
    ) -> Outcome<Vec<R>> {
        let mut items = Vec::new();
        while !self.at(close) {
            items.push(item(self)?);
            if self.at(close) {
                break;
            }
            if !self.at(T::Comma) {
                return Err(self.expected(&format!("`,` or {}", close.describe())));
            }
            let comma = self.bump().span;
            if self.at(close) && !trailing_comma {
                self.report(errors::trailing_comma(comma));
            }
        }
        Ok(items)
    }

    /// Reads type parameters `<T1, T2>` after a declared name, and declares them. Returns none if no `<` follows.
    fn type_params(&mut self) -> Outcome<Vec<Name>> {
        if !self.eat(T::Lt) {
            return Ok(Vec::new());
        }
        let names = self.comma_list(T::Gt, false, |p| p.name("a type parameter"))?;
        self.expect(T::Gt)?;
        for name in &names {
            self.scopes.declare(name, true);
        }
        Ok(names)
    }
}
