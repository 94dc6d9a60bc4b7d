//! Parses statements.

use super::decl::Place;
use super::recovery::starts_declaration;
use super::types::starts_base_type;
use super::{Outcome, Parser};
use crate::ast::{
    Annotation, BinaryOp, Block, Decl, DeclKind, Expr, ExprKind, ForCollection, Stmt, StmtKind,
    SwitchCase, SwitchLabel, VarDecl,
};
use crate::errors;
use crate::source::Span;
use crate::token::TokenKind as T;

/// Returns the operator of a compound assignment such as `+=`, `Some(None)` for `=`, and `None` for a token
/// that assigns nothing.
fn assignment(kind: T) -> Option<Option<BinaryOp>> {
    Some(Some(match kind {
        T::Assign => return Some(None),
        T::AddAssign => BinaryOp::Add,
        T::SubAssign => BinaryOp::Sub,
        T::SatAddAssign => BinaryOp::SatAdd,
        T::SatSubAssign => BinaryOp::SatSub,
        T::MulAssign => BinaryOp::Mul,
        T::DivAssign => BinaryOp::Div,
        T::ModAssign => BinaryOp::Mod,
        T::ShlAssign => BinaryOp::Shl,
        T::AndAssign => BinaryOp::BitAnd,
        T::OrAssign => BinaryOp::BitOr,
        T::XorAssign => BinaryOp::BitXor,
        _ => return None,
    }))
}

impl Parser<'_> {
    /// Reads `{ statements }` and the annotations before it, in a new scope. `what` names the construct in messages.
    pub(super) fn block(&mut self, what: &str) -> Outcome<Block> {
        let annotations = self.annotations()?;
        self.block_after(annotations, what)
    }

    fn block_after(&mut self, annotations: Vec<Annotation>, what: &str) -> Outcome<Block> {
        let start = self.span();
        let stmts = self.scoped(|p| p.braced_items(what, Self::stmt))?;
        Ok(Block {
            annotations,
            stmts,
            span: self.since(start),
        })
    }

    /// Reads one statement or local declaration.
    pub(super) fn stmt(&mut self) -> Outcome<Stmt> {
        self.deeper(|p| {
            let start = p.span();
            let kind = p.stmt_kind()?;
            Ok(Stmt {
                kind,
                span: p.since(start),
            })
        })
    }

    fn stmt_kind(&mut self) -> Outcome<StmtKind> {
        if self.in_state {
            self.check_state_statement();
        }
        match self.kind() {
            T::Semi => {
                self.bump();
                Ok(StmtKind::Empty)
            }
            T::If => self.if_stmt(),
            T::Switch => self.switch(),
            T::For => self.for_stmt(Vec::new()),
            T::LBrace => Ok(StmtKind::Block(self.block("block")?)),
            T::Return => self.return_stmt(),
            T::Exit => self.word_stmt(StmtKind::Exit, "`exit`"),
            T::Break => self.word_stmt(StmtKind::Break, "`break`"),
            T::Continue => self.word_stmt(StmtKind::Continue, "`continue`"),
            T::At => self.annotated_stmt(),
            T::Else => Err(self.fail(errors::else_without_if(self.span()))),
            T::Const => self.local_decl(Vec::new()),
            kind if starts_declaration(kind) || self.at_declaration() => {
                self.local_decl(Vec::new())
            }
            _ => {
                let (start, gaps) = (self.pos, self.gaps.len());
                let stmt = self.simple_stmt()?;
                self.semi("the statement")?;
                self.doubt(start, gaps);
                Ok(stmt)
            }
        }
    }

    /// Reports the current statement if it is not allowed in a parser state, such as `return`.
    fn check_state_statement(&mut self) {
        let token = self.token();
        if matches!(
            token.kind,
            T::Return | T::Exit | T::Switch | T::For | T::Break | T::Continue
        ) {
            self.report(errors::not_in_state(token.span, &token.text));
        }
    }

    fn word_stmt(&mut self, kind: StmtKind, word: &str) -> Outcome<StmtKind> {
        self.bump();
        self.semi(word)?;
        Ok(kind)
    }

    fn local_decl(&mut self, annotations: Vec<Annotation>) -> Outcome<StmtKind> {
        Ok(StmtKind::Decl(Box::new(
            self.decl_after(annotations, Place::Block)?,
        )))
    }

    fn annotated_stmt(&mut self) -> Outcome<StmtKind> {
        let annotations = self.annotations()?;
        match self.kind() {
            T::LBrace => Ok(StmtKind::Block(self.block_after(annotations, "block")?)),
            T::For => self.for_stmt(annotations),
            _ => self.local_decl(annotations),
        }
    }

    /// Returns whether the current token starts the declaration of a variable or instance rather than an expression. For
    /// faulty programs this is a guess: by whether a name follows on the same line where a semicolon may be missing.
    fn at_declaration(&self) -> bool {
        match self.kind() {
            T::Error => return self.kind_at(1) != T::Dot,
            T::List => return self.kind_at(1) == T::Lt,
            kind if starts_base_type(kind) => return true,
            _ => {}
        }
        let name = self.pos + usize::from(self.at(T::Dot));
        if self.token_index(name).kind != T::Ident {
            return false;
        }
        let is_type = self.scopes.is_type(&self.token_index(name).text);
        let names = |index: usize| self.token_index(index).kind.is_name();
        let mut next = name + 1;
        if self.token_index(next).kind == T::Lt {
            let Some(after) = self.after_type_args(next) else {
                return false;
            };
            next = after;
        }
        match self.token_index(next).kind {
            T::LBracket => {
                while self.token_index(next).kind == T::LBracket {
                    let Some(after) = self.after_partner(next) else {
                        return false;
                    };
                    next = after;
                }
                names(next)
            }
            // `f(x)` with a name on the next line is more likely a call that lacks its semicolon.
            T::LParen => self.after_partner(next).is_some_and(|after| {
                names(after) && (is_type || !self.token_index(after).line_start)
            }),
            _ => names(next) && (is_type || !self.token_index(next).line_start),
        }
    }

    /// Reads an assignment or a call, without the semicolon.
    fn simple_stmt(&mut self) -> Outcome<StmtKind> {
        let target = self.statement_expr()?;
        let shift_assign = self.at(T::Gt) && self.token().joint && self.kind_at(1) == T::Ge;
        if shift_assign {
            self.bump();
        }
        let op = if shift_assign {
            Some(Some(BinaryOp::Shr))
        } else {
            assignment(self.kind())
        };
        if let Some(op) = op {
            if !is_lvalue(&target) {
                self.report(errors::not_assignable(target.span));
            }
            self.bump();
            let value = self.expr()?;
            return Ok(StmtKind::Assign { op, target, value });
        }
        match target.kind {
            ExprKind::Call { .. } => Ok(StmtKind::Call(target)),
            // A complete expression where a statement ends is a mistake of its own; else this is just not one.
            _ if self.at(T::Semi) || self.at(T::RBrace) || self.token().line_start => {
                self.report(errors::expression_statement(target.span));
                Ok(StmtKind::Empty)
            }
            _ => Err(self.expected("`=` or `(`")),
        }
    }

    fn if_stmt(&mut self) -> Outcome<StmtKind> {
        self.expect(T::If)?;
        self.expect(T::LParen)?;
        let condition = self.expr()?;
        self.expect(T::RParen)?;
        let then_branch = Box::new(self.stmt()?);
        let else_branch = if self.eat(T::Else) {
            Some(Box::new(self.stmt()?))
        } else {
            None
        };
        Ok(StmtKind::If {
            condition,
            then_branch,
            else_branch,
        })
    }

    fn return_stmt(&mut self) -> Outcome<StmtKind> {
        self.bump();
        let nothing = self.at(T::Semi) || self.at(T::RBrace);
        let value = if nothing { None } else { Some(self.expr()?) };
        self.semi("`return`")?;
        Ok(StmtKind::Return(value))
    }

    fn switch(&mut self) -> Outcome<StmtKind> {
        self.bump();
        self.expect(T::LParen)?;
        let subject = self.expr()?;
        self.expect(T::RParen)?;
        let cases = self.braced_items("switch", Self::switch_case)?;
        Ok(StmtKind::Switch { subject, cases })
    }

    fn switch_case(&mut self) -> Outcome<SwitchCase> {
        let start = self.span();
        let label = match self.kind() {
            T::Default => SwitchLabel::Default(self.bump().span),
            T::LBrace => return Err(self.expected("a case label")),
            _ => SwitchLabel::Expr(self.expr()?),
        };
        self.expect(T::Colon)?;
        let body = if matches!(self.kind(), T::LBrace | T::At) {
            Some(self.block("block")?)
        } else {
            None
        };
        Ok(SwitchCase {
            label,
            body,
            span: self.since(start),
        })
    }

    // -- Loops --------------------------------------------------------------------------------------------------------

    fn for_stmt(&mut self, annotations: Vec<Annotation>) -> Outcome<StmtKind> {
        self.expect(T::For)?;
        self.expect(T::LParen)?;
        self.scoped(|p| {
            let start = p.span();
            let before_variable = p.annotations()?;
            if !before_variable.is_empty() || p.at_declaration() {
                let variable = p.loop_variable(before_variable, start)?;
                let has_init =
                    matches!(&variable.kind, DeclKind::Var(VarDecl { init: Some(_), .. }));
                if !has_init && p.eat(T::In) {
                    return p.for_in(annotations, variable);
                }
                return p.for_c(annotations, Some(variable));
            }
            p.for_c(annotations, None)
        })
    }

    /// Reads the variable of a `for` loop: `T name` or `T name = value`.
    fn loop_variable(&mut self, annotations: Vec<Annotation>, start: Span) -> Outcome<Decl> {
        let ty = self.ty()?;
        let name = self.name("a loop variable's name")?;
        self.scopes.declare(&name, false);
        let init = if self.eat(T::Assign) {
            Some(self.expr()?)
        } else {
            None
        };
        Ok(Decl {
            annotations,
            kind: DeclKind::Var(VarDecl { ty, name, init }),
            span: self.since(start),
        })
    }

    fn for_in(&mut self, annotations: Vec<Annotation>, variable: Decl) -> Outcome<StmtKind> {
        let low = self.expr()?;
        let collection = if self.eat(T::Range) {
            ForCollection::Range(low, self.expr()?)
        } else {
            ForCollection::Expr(low)
        };
        self.expect(T::RParen)?;
        let body = Box::new(self.stmt()?);
        Ok(StmtKind::ForIn {
            annotations,
            variable: Box::new(variable),
            collection,
            body,
        })
    }

    fn for_c(&mut self, annotations: Vec<Annotation>, first: Option<Decl>) -> Outcome<StmtKind> {
        let mut init = Vec::new();
        if let Some(decl) = first {
            init.push(Stmt {
                span: decl.span,
                kind: StmtKind::Decl(Box::new(decl)),
            });
            if self.eat(T::Comma) {
                init.extend(self.comma_list(T::Semi, false, Self::for_init)?);
            }
        } else {
            init = self.comma_list(T::Semi, false, Self::for_init)?;
        }
        self.expect(T::Semi)?;
        let condition = self.expr()?;
        self.expect(T::Semi)?;
        let update = self.comma_list(T::RParen, false, Self::spanned_simple_stmt)?;
        self.expect(T::RParen)?;
        let body = Box::new(self.stmt()?);
        Ok(StmtKind::For {
            annotations,
            init,
            condition,
            update,
            body,
        })
    }

    fn for_init(&mut self) -> Outcome<Stmt> {
        let start = self.span();
        let annotations = self.annotations()?;
        if !annotations.is_empty() || self.at_declaration() {
            let decl = self.loop_variable(annotations, start)?;
            return Ok(Stmt {
                span: decl.span,
                kind: StmtKind::Decl(Box::new(decl)),
            });
        }
        self.spanned_simple_stmt()
    }

    fn spanned_simple_stmt(&mut self) -> Outcome<Stmt> {
        let start = self.span();
        let kind = self.simple_stmt()?;
        Ok(Stmt {
            kind,
            span: self.since(start),
        })
    }

    /// Reads the body of a function, action or control. Fails if no body starts at the current token, because the
    /// text before it is broken; the caller then skips the body.
    pub(super) fn body(&mut self, what: &str) -> Outcome<Block> {
        if !matches!(self.kind(), T::LBrace | T::At) && !self.lacks_open_brace() {
            return Err(self.expected("`{`"));
        }
        let outer = std::mem::replace(&mut self.in_state, false);
        let block = self.block(what);
        self.in_state = outer;
        block
    }
}

fn is_lvalue(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Path(_) | ExprKind::This | ExprKind::Missing => true,
        ExprKind::Member { base, .. }
        | ExprKind::Index { base, .. }
        | ExprKind::Slice { base, .. }
        | ExprKind::PlusSlice { base, .. } => is_lvalue(base),
        _ => false,
    }
}
