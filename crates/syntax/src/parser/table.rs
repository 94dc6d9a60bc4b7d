//! Parses tables, and the key sets that they share with `select`.

use super::{Outcome, Parser};
use crate::ast::{
    ActionRef, Annotation, Entry, Expr, ExprKind, KeyElement, Keyset, KeysetKind, Keysets,
    TableDecl, TableProperty, TablePropertyKind,
};
use crate::errors;
use crate::token::TokenKind as T;

impl Parser<'_> {
    /// Reads a table, beginning with the word `table`.
    pub(super) fn table(&mut self) -> Outcome<TableDecl> {
        self.expect(T::Table)?;
        let name = self.name("a table's name")?;
        self.scopes.declare(&name, false);
        let properties = self.braced_items("table", Self::table_property)?;
        Ok(TableDecl { name, properties })
    }

    fn table_property(&mut self) -> Outcome<TableProperty> {
        let start = self.span();
        let annotations = self.annotations()?;
        let is_const = self.eat(T::Const);
        let name = self.name("a table property")?;
        self.expect(T::Assign)?;
        let kind = match name.as_str() {
            "key" => TablePropertyKind::Key(self.braced_items("key", Self::key_element)?),
            "actions" => TablePropertyKind::Actions(
                self.braced_items("list of actions", Self::listed_action)?,
            ),
            "entries" => {
                TablePropertyKind::Entries(self.braced_items("list of entries", Self::entry)?)
            }
            "default_action" => TablePropertyKind::DefaultAction(self.property_value()?),
            "size" => TablePropertyKind::Size(self.property_value()?),
            _ => TablePropertyKind::Custom(self.property_value()?),
        };
        let is_list = matches!(
            kind,
            TablePropertyKind::Key(_)
                | TablePropertyKind::Actions(_)
                | TablePropertyKind::Entries(_)
        );
        if is_list && self.at(T::Semi) {
            let span = self.span();
            self.report(errors::semicolon_after_list(span, name.as_str()));
            self.bump();
        }
        Ok(TableProperty {
            annotations,
            is_const,
            name,
            kind,
            span: self.since(start),
        })
    }

    fn property_value(&mut self) -> Outcome<Expr> {
        let value = self.expr()?;
        self.semi("the table property")?;
        Ok(value)
    }

    fn key_element(&mut self) -> Outcome<KeyElement> {
        let start = self.span();
        let expr = self.expr()?;
        if self.at(T::Semi) || self.token().line_start {
            return Err(self.fail(errors::key_without_match_kind(expr.span)));
        }
        self.expect(T::Colon)?;
        let match_kind = self.name("a match kind")?;
        let annotations = self.annotations()?;
        self.semi("the key element")?;
        Ok(KeyElement {
            expr,
            match_kind,
            annotations,
            span: self.since(start),
        })
    }

    fn listed_action(&mut self) -> Outcome<ActionRef> {
        let annotations = self.annotations()?;
        let action = self.action_ref(annotations)?;
        self.semi("the action")?;
        Ok(action)
    }

    fn action_ref(&mut self, annotations: Vec<Annotation>) -> Outcome<ActionRef> {
        let start = annotations.first().map_or(self.span(), |a| a.span);
        let path = self.path("an action's name")?;
        let args = if self.at(T::LParen) {
            Some(self.arguments()?)
        } else {
            None
        };
        Ok(ActionRef {
            annotations,
            path,
            args,
            span: self.since(start),
        })
    }

    fn entry(&mut self) -> Outcome<Entry> {
        let start = self.span();
        let is_const = self.eat(T::Const);
        let priority = if self.at(T::Priority) && self.kind_at(1) == T::Assign {
            Some(self.priority()?)
        } else {
            None
        };
        let keysets = self.keysets()?;
        self.expect(T::Colon)?;
        let action = self.action_ref(Vec::new())?;
        let annotations = self.annotations()?;
        self.semi("the entry")?;
        Ok(Entry {
            is_const,
            priority,
            keysets,
            action,
            annotations,
            span: self.since(start),
        })
    }

    /// Reads the priority of a table entry: `priority = 10:` or `priority = (expression):`.
    fn priority(&mut self) -> Outcome<Expr> {
        self.bump();
        self.expect(T::Assign)?;
        let priority = self.expr()?;
        if !matches!(priority.kind, ExprKind::Int(_) | ExprKind::Missing)
            && !self.wrapped(&priority)
        {
            self.report(errors::bare_priority(priority.span));
        }
        self.expect(T::Colon)?;
        Ok(priority)
    }

    /// Returns whether parentheses enclose the whole expression that has just been read.
    fn wrapped(&self, expr: &Expr) -> bool {
        let first = self.tokens[..self.pos]
            .iter()
            .rposition(|t| t.span.start == expr.span.start);
        first.is_some_and(|i| {
            self.token_index(i).kind == T::LParen && self.after_partner(i) == Some(self.pos)
        })
    }

    /// Reads `keyset` or `(keyset, keyset, ...)`, up to the colon after it.
    pub(super) fn keysets(&mut self) -> Outcome<Keysets> {
        let start = self.span();
        let tuple = self.at(T::LParen)
            && self
                .after_partner(self.pos)
                .is_some_and(|after| self.token_index(after).kind == T::Colon);
        let items = if tuple {
            self.bump();
            let items = self.bracketed(|p| p.comma_list(T::RParen, false, Self::keyset))?;
            self.expect(T::RParen)?;
            items
        } else {
            vec![self.keyset()?]
        };
        Ok(Keysets {
            items,
            span: self.since(start),
        })
    }

    fn keyset(&mut self) -> Outcome<Keyset> {
        let start = self.span();
        let kind = match self.kind() {
            T::Default => KeysetKind::Default,
            T::Underscore => KeysetKind::DontCare,
            _ => {
                let value = self.expr()?;
                let kind = if self.eat(T::Mask) {
                    KeysetKind::Mask(value, self.expr()?)
                } else if self.eat(T::Range) {
                    KeysetKind::Range(value, self.expr()?)
                } else {
                    KeysetKind::Expr(value)
                };
                return Ok(Keyset {
                    kind,
                    span: self.since(start),
                });
            }
        };
        self.bump();
        Ok(Keyset { kind, span: start })
    }
}
