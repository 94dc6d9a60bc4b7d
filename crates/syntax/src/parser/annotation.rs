//! Parses annotations.

use super::{Outcome, Parser};
use crate::ast::{
    Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Name, NamedExpr,
};
use crate::errors;
use crate::source::Span;
use crate::token::{Token, TokenKind as T};

impl Parser<'_> {
    /// Reads any number of annotations, one after the other.
    pub(super) fn annotations(&mut self) -> Outcome<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.at(T::At) {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self) -> Outcome<Annotation> {
        let start = self.expect(T::At)?;
        if &*self.token().text == "pragma" && self.at(T::Ident) {
            return self.pragma(start);
        }
        let name = self.annotation_name()?;
        let body = match self.kind() {
            T::LParen => {
                let open = self.bump().span;
                AnnotationBody::Tokens(self.annotation_tokens(open)?)
            }
            T::LBracket => {
                self.bump();
                let body = self.bracketed(Self::structured_body)?;
                self.expect(T::RBracket)?;
                body
            }
            _ => AnnotationBody::None,
        };
        Ok(Annotation {
            name,
            body,
            is_pragma: false,
            span: self.since(start),
        })
    }

    /// Reads `@pragma name tokens`, up to the end of the line.
    fn pragma(&mut self, start: Span) -> Outcome<Annotation> {
        self.bump();
        let name = self.annotation_name()?;
        let mut tokens = Vec::new();
        while !self.token().line_start && !self.at(T::Eof) {
            let token = self.bump();
            tokens.push(self.annotation_token(token));
        }
        let body = if tokens.is_empty() {
            AnnotationBody::None
        } else {
            AnnotationBody::Tokens(tokens)
        };
        Ok(Annotation {
            name,
            body,
            is_pragma: true,
            span: self.since(start),
        })
    }

    /// Reads the name of an annotation, which may be an identifier or any keyword.
    fn annotation_name(&mut self) -> Outcome<Name> {
        if !self.kind().is_word() {
            return Err(self.expected("an annotation's name"));
        }
        let token = self.bump();
        Ok(Name {
            text: token.text.clone(),
            span: token.span,
        })
    }

    /// Reads the tokens of an annotation's body up to and including its closing parenthesis; `open` is the
    /// place of the opening one. Reports a missing closing parenthesis, and skips the rest of the line.
    fn annotation_tokens(&mut self, open: Span) -> Outcome<Vec<AnnotationToken>> {
        let start = self.pos;
        let mut tokens = Vec::new();
        let mut depth = 0;
        loop {
            match self.kind() {
                T::RParen if depth == 0 => {
                    self.bump();
                    return Ok(tokens);
                }
                T::Eof => {
                    self.pos = start;
                    let failed = self.fail(errors::unclosed_annotation(open));
                    while !self.token().line_start {
                        self.bump();
                    }
                    return Err(failed);
                }
                T::LParen => depth += 1,
                T::RParen => depth -= 1,
                _ => {}
            }
            let token = self.bump();
            tokens.push(self.annotation_token(token));
        }
    }

    fn annotation_token(&mut self, token: &Token) -> AnnotationToken {
        let text = token.text.clone();
        let kind = match token.kind {
            T::Str => AnnotationTokenKind::Str(super::expr::string_value(&text)),
            T::Int => match super::expr::int_literal(&text) {
                Ok(literal) => AnnotationTokenKind::Int(literal),
                Err(_) => AnnotationTokenKind::Symbol(text.clone()),
            },
            kind if kind.is_word() => AnnotationTokenKind::Word(text.clone()),
            _ => AnnotationTokenKind::Symbol(text.clone()),
        };
        AnnotationToken {
            kind,
            text,
            space_before: token.space_before,
            span: token.span,
        }
    }

    fn structured_body(&mut self) -> Outcome<AnnotationBody> {
        if self.kind().is_name() && self.kind_at(1) == T::Assign {
            let list = self.comma_list(T::RBracket, true, Self::named_expr)?;
            Ok(AnnotationBody::KeyValue(list))
        } else {
            Ok(AnnotationBody::List(self.comma_list(
                T::RBracket,
                true,
                Self::expr,
            )?))
        }
    }

    /// Reads a pair `name = expression` of an annotation.
    pub(super) fn named_expr(&mut self) -> Outcome<NamedExpr> {
        let name = self.name("a name")?;
        self.expect(T::Assign)?;
        Ok(NamedExpr {
            name,
            value: self.expr()?,
        })
    }
}
