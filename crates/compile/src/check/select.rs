//! `select`, and the sets of values that selects and table entries compare with.

use std::collections::BTreeMap;
use std::sync::Arc;

use syntax::ast;
use syntax::source::Span;

use super::scope::Symbol;
use super::{Checked, Checker};
use crate::errors;
use crate::hir::{Expr, ExprKind, Keyset, Transition, VarKind};
use crate::types::Ty;

impl Checker {
    pub(super) fn select_transition(
        &mut self,
        args: &[ast::Expr],
        cases: &[ast::SelectCase],
        names: &BTreeMap<Arc<str>, (usize, Span)>,
    ) -> Transition {
        let args: Vec<Expr> = args.iter().map(|arg| self.infer(arg, None)).collect();
        let types: Vec<Ty> = match &args[..] {
            // A tuple by itself is like its members.
            [only] => match &only.kind {
                ExprKind::Aggregate(items) => items.iter().map(|e| e.ty.clone()).collect(),
                _ => vec![only.ty.clone()],
            },
            args => args.iter().map(|e| e.ty.clone()).collect(),
        };
        let mut keys = Vec::new();
        args.into_iter()
            .for_each(|arg| self.key_parts(arg, &mut keys));
        let mut out = Vec::new();
        let mut covered = false;
        for case in cases {
            if covered {
                self.report(errors::unreachable_case(case.span));
            }
            let keysets = self.keysets(&case.keysets, &types, "select");
            let target = self.target(&case.state, names);
            if let Some(keysets) = keysets {
                covered = keysets.iter().all(|k| matches!(k, Keyset::Any));
                out.push((keysets, target));
            }
        }
        Transition::Select { keys, cases: out }
    }

    /// Checks the sets with which a select's case or a table's entry compares keys of the types `types`.
    /// Returns one set for each scalar of the keys; `None` after an error, such as a wrong number of sets.
    /// `what` names the case or entry in the message.
    pub(super) fn keysets(
        &mut self,
        sets: &ast::Keysets,
        types: &[Ty],
        what: &str,
    ) -> Option<Vec<Keyset>> {
        use ast::KeysetKind as K;
        if let [only] = &sets.items[..] {
            match &only.kind {
                K::Default | K::DontCare => return Some(self.any_of(types)),
                K::Expr(expr) => {
                    if let Some(set) = self.value_set(expr, types) {
                        return Some(vec![set]);
                    }
                    if types.len() > 1 {
                        return self.tuple_keyset(expr, types, what);
                    }
                }
                _ => {}
            }
        }
        if sets.items.len() != types.len() {
            self.report(errors::keyset_count(
                sets.span,
                what,
                types.len(),
                sets.items.len(),
            ));
            return None;
        }
        let mut out = Vec::new();
        for (set, ty) in sets.items.iter().zip(types) {
            match self.module.types.members(ty) {
                Some(members) => out.extend(self.nested_keysets(set, &members, what)?),
                None => out.push(self.keyset(set, ty)),
            }
        }
        Some(out)
    }

    /// Checks the set for a key that is a struct or tuple with members of the types `members`. Returns one
    /// set for each scalar of the key; `None` after an error. `what` names the case in messages.
    fn nested_keysets(
        &mut self,
        set: &ast::Keyset,
        members: &[Ty],
        what: &str,
    ) -> Option<Vec<Keyset>> {
        use ast::KeysetKind as K;
        match &set.kind {
            K::Default | K::DontCare => Some(self.any_of(members)),
            K::Expr(expr) => match &expr.kind {
                ast::ExprKind::List(items) => {
                    let items = items.iter().map(|e| ast::Keyset {
                        kind: K::Expr(e.clone()),
                        span: e.span,
                    });
                    let sets = ast::Keysets {
                        items: items.collect(),
                        span: expr.span,
                    };
                    self.keysets(&sets, members, what)
                }
                _ => self.tuple_keyset(expr, members, what),
            },
            K::Mask(..) | K::Range(..) => {
                let found = self.show(&Ty::Tuple(members.iter().cloned().collect()));
                self.report(errors::mask_type(set.span, &found));
                None
            }
        }
    }

    /// Checks an expression that gives the sets for keys of the types `types` as one constant tuple or
    /// struct. Returns one set for each scalar; `None` after an error. `what` names the case in messages.
    fn tuple_keyset(&mut self, expr: &ast::Expr, types: &[Ty], what: &str) -> Option<Vec<Keyset>> {
        let value = self.infer(expr, None);
        if value.ty == Ty::Missing {
            return None;
        }
        if let ExprKind::Aggregate(items) = value.kind
            && items.len() == types.len()
        {
            let mut out = Vec::new();
            for (item, ty) in items.into_iter().zip(types) {
                let item = self.coerce(item, ty);
                let item = self.require_literal(item, "a value to match");
                literal_keysets(item, &mut out);
            }
            return Some(out);
        }
        self.report(errors::keyset_count(expr.span, what, types.len(), 1));
        None
    }

    fn value_set(&mut self, expr: &ast::Expr, types: &[Ty]) -> Option<Keyset> {
        let ast::ExprKind::Path(path) = &expr.kind else {
            return None;
        };
        let Some(Symbol::Var(id)) = self.find(path) else {
            return None;
        };
        let Ty::ValueSet(item) = self.module.var(id).ty.clone() else {
            return None;
        };
        let members = self.module.types.flat_members(&item);
        let wanted: Vec<Ty> = types
            .iter()
            .flat_map(|t| self.module.types.flat_members(t))
            .collect();
        let rep = |t: &Ty| self.module.types.representation(t);
        let same = members.len() == wanted.len()
            && members
                .iter()
                .zip(&wanted)
                .all(|(a, b)| rep(a) == rep(b) || *b == Ty::Missing);
        if !same {
            let found = self.show(&item);
            let wanted = self.show(&Ty::Tuple(types.iter().cloned().collect()));
            self.report(errors::type_mismatch(expr.span, &wanted, &found));
        }
        Some(Keyset::ValueSet(id))
    }

    fn keyset(&mut self, set: &ast::Keyset, ty: &Ty) -> Keyset {
        use ast::KeysetKind as K;
        match &set.kind {
            K::Default | K::DontCare => Keyset::Any,
            K::Expr(expr) => {
                if let Some(set) = self.value_set(expr, std::slice::from_ref(ty)) {
                    return set;
                }
                match &expr.kind {
                    // Braces around a single value.
                    ast::ExprKind::List(items) if items.len() == 1 => {
                        Keyset::Value(self.keyset_value(&items[0], ty))
                    }
                    _ => Keyset::Value(self.keyset_value(expr, ty)),
                }
            }
            K::Mask(value, mask) => {
                let bits = &self.module.types.representation(ty);
                let value = self.keyset_value(value, bits);
                let mask = self.keyset_value(mask, bits);
                self.require_bits(ty, set.span);
                Keyset::Mask(value, mask)
            }
            K::Range(low, high) => {
                let bits = &self.module.types.representation(ty);
                let low = self.keyset_value(low, bits);
                let high = self.keyset_value(high, bits);
                self.require_bits(ty, set.span);
                if let (Some(a), Some(b)) = (low.as_int(), high.as_int())
                    && a > b
                {
                    self.report(errors::empty_range(
                        set.span,
                        &a.to_string(),
                        &b.to_string(),
                    ));
                }
                Keyset::Range(low, high)
            }
        }
    }

    fn keyset_value(&mut self, expr: &ast::Expr, ty: &Ty) -> Expr {
        let value = self.expect(expr, ty);
        let depends = matches!(&value.kind, ExprKind::Var(id)
            if matches!(self.module.var(*id).kind, VarKind::ConstructorParam));
        if depends {
            value
        } else {
            self.require_literal(value, "a value to match")
        }
    }
}

impl Checked {
    /// Appends to `out` each scalar that the key of a select consists of. Reports a part of a type that
    /// cannot be compared, such as a header.
    fn key_parts(&mut self, key: Expr, out: &mut Vec<Expr>) {
        let span = key.span;
        if let ExprKind::Aggregate(items) = key.kind {
            items.into_iter().for_each(|e| self.key_parts(e, out));
            return;
        }
        let members = match &key.ty {
            Ty::Struct(id) => {
                let fields = &self.module.types.structure(*id).fields;
                fields.iter().map(|f| f.ty.clone()).collect()
            }
            Ty::Tuple(items) => items.to_vec(),
            _ => Vec::new(),
        };
        // A computed value is not taken apart: it would be computed once for each part.
        if !members.is_empty() && is_stored(&key) {
            for (i, ty) in members.into_iter().enumerate() {
                let part = Expr::new(ExprKind::Field(Box::new(key.clone()), i), ty, span);
                self.key_parts(part, out);
            }
            return;
        }
        if key.ty == Ty::Int {
            self.report(errors::unsized_int(span));
        } else if self.module.types.scalar_width(&key.ty).is_some() {
            out.push(key);
            return;
        } else if key.ty != Ty::Missing {
            let found = self.show(&key.ty);
            self.report(errors::select_key(span, &found));
        }
        out.push(Expr::missing(span));
    }

    /// Returns, for each scalar of values of the types `types`, the set that contains every value.
    fn any_of(&self, types: &[Ty]) -> Vec<Keyset> {
        let scalars = types
            .iter()
            .map(|t| self.module.types.flat_members(t).len());
        vec![Keyset::Any; scalars.sum()]
    }

    /// Reports a mask or a range of values of type `ty` if these are no numbers.
    fn require_bits(&mut self, ty: &Ty, span: Span) {
        if !matches!(
            self.module.types.representation(ty),
            Ty::Bit(_) | Ty::Signed(_) | Ty::Missing
        ) {
            let found = self.show(ty);
            self.report(errors::mask_type(span, &found));
        }
    }
}

/// Returns whether an expression is a variable, or a field of a variable at any depth.
fn is_stored(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Var(_) => true,
        ExprKind::Field(base, _) => is_stored(base),
        _ => false,
    }
}

/// Appends to `out`, for each scalar of the constant `value`, the set that contains that scalar alone.
fn literal_keysets(value: Expr, out: &mut Vec<Keyset>) {
    match value.kind {
        ExprKind::Aggregate(items) => items.into_iter().for_each(|e| literal_keysets(e, out)),
        _ => out.push(Keyset::Value(value)),
    }
}
