//! Expressions.

use super::Slots;
use super::wide::Wide;
use ir::Expr;

impl Slots<'_, '_> {
    /// Generates the calculation of an expression, and returns its value. Since expressions have no side
    /// effects, both sides of an [`Expr::Mux`] are evaluated.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Wide {
        let is_choice = matches!(expr, Expr::Unary { .. } | Expr::Binary { .. });
        if is_choice
            && expr.width(&self.program.slots) == 1
            && let Some(holds) = self.known(expr)
        {
            return self.small_constant(1, holds.into());
        }
        match expr {
            Expr::Const(bits) => self.constant(bits),
            Expr::Slot(slot) => self.read(*slot),
            Expr::Unary { op, a } => {
                let a = self.expr(a);
                self.unary(*op, &a)
            }
            Expr::Binary { op, a, b } => {
                let a = self.expr(a);
                let b = self.expr(b);
                self.binary(*op, &a, &b)
            }
            Expr::Slice { a, high, low } => {
                let a = self.expr(a);
                self.slice(&a, *high, *low)
            }
            Expr::Concat { a, b } => {
                let a = self.expr(a);
                let b = self.expr(b);
                self.concat(&a, &b)
            }
            Expr::ZeroExtend { a, width } => {
                let a = self.expr(a);
                self.resize(&a, *width)
            }
            Expr::SignExtend { a, width } => {
                let a = self.expr(a);
                self.sign_extend(&a, *width)
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => {
                if let Some(element) = self.chosen(expr) {
                    return element;
                }
                let cond = self.expr(cond);
                let then = self.expr(then);
                let otherwise = self.expr(otherwise);
                self.mux(cond.low(), &then, &otherwise)
            }
            Expr::PacketLength => {
                let length = self.packet_len;
                let length = self.and_imm(length, u32::MAX.into());
                Wide::word(32, length)
            }
        }
    }

    /// Generates the calculation of several expressions, and returns their values.
    pub(crate) fn exprs(&mut self, exprs: &[Expr]) -> Vec<Wide> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }
}
