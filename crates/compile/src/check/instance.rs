//! Instances with a body, which gives the abstract methods of an extern; and overloads of an extern's
//! members.
//!
//! v1model has no extern with abstract methods: such programs are checked here, and lowering reports them.

use std::rc::Rc;

use syntax::ast::{self, DeclKind};

use super::call::direction;
use super::infer::{Bindings, known};
use super::rules::ParamsOf;
use super::scope::FnTemplate;
use super::{Checked, Checker};
use crate::errors;
use crate::types::{ExternDef, FnSig, ParamSig, Ty};

impl Checker {
    /// Checks the `{ ... }` after an instance of type `ty`, which may declare functions and instances and
    /// must contain the abstract methods of the extern. Reports missing methods, and a body of anything but
    /// an extern.
    pub(super) fn instance_body(&mut self, decl: &ast::Instantiation, ty: &Ty) {
        let (def, args) = match ty {
            Ty::Extern(id, args) => (self.module.types.external(*id).clone(), args.clone()),
            _ => {
                if decl.body.is_some() {
                    let shown = self.show(ty);
                    self.report(errors::body_of(decl.name.span, &shown));
                }
                return;
            }
        };
        let mut provided: Vec<std::sync::Arc<str>> = Vec::new();
        for member in decl.body.iter().flatten() {
            match &member.kind {
                DeclKind::Function(function) => {
                    provided.push(function.signature.name.text.clone());
                    self.provided_method(&def, &args, function);
                }
                DeclKind::Instantiation(instance) => {
                    let _ = self.instance(instance, &member.annotations);
                }
                _ => self.report(errors::declaration_place(member.span)),
            }
        }
        let lacking = def
            .abstract_methods
            .iter()
            .find(|m| !provided.contains(&m.name));
        if let Some(method) = lacking {
            self.report(errors::abstract_method(decl.name.span, &method.name));
        }
    }

    /// Checks a function in the body of an instance, which must be an abstract method of the extern `def`:
    /// its signature must equal that of the method with the type arguments `args`.
    fn provided_method(&mut self, def: &ExternDef, args: &[Ty], decl: &ast::FunctionDecl) {
        let name = &decl.signature.name;
        let sig = self.scoped(|c| c.signature(&decl.signature, &[], ParamsOf::Function));
        let wanted = def
            .abstract_methods
            .iter()
            .find(|m| m.name == name.text && m.params.len() == sig.params.len());
        let Some(wanted) = wanted else {
            let names = def.abstract_methods.iter().map(|m| &*m.name);
            let similar = self.closest(name.as_str(), names);
            let message =
                errors::no_abstract_method(name.span, name.as_str(), &def.name, similar.as_deref());
            return self.report(message);
        };
        let bindings = known(&def.type_params, args);
        let pairs = sig.params.iter().zip(&wanted.params);
        for (found, wanted) in pairs {
            if found.direction != wanted.direction {
                let wanted = format!("{}{}", direction(wanted.direction), wanted.name);
                let given = format!("{}{}", direction(found.direction), found.name);
                self.report(errors::type_mismatch(found.span, &wanted, &given));
            }
            self.same_type(&wanted.ty, &found.ty, &bindings, found.span);
        }
        let span = decl.signature.return_type.span;
        self.same_type(&wanted.ret, &sig.ret, &bindings, span);
        let template = FnTemplate {
            sig: Rc::new(sig),
            decl: decl.clone(),
            index: self.generics.templates,
            depth: self.scopes.depth(),
        };
        self.generics.templates += 1;
        let _ = self.function_body(&template, &[]);
    }
}

impl Checked {
    /// Reports a function that has the same name, and the same parameter names in the same order, as one of
    /// the overloads `earlier`.
    pub(super) fn check_overloads(
        &mut self,
        earlier: &[Rc<FnSig>],
        params: &[ParamSig],
        name: &ast::Name,
    ) {
        let same = |f: &&Rc<FnSig>| {
            let names = f.params.iter().map(|p| &p.name);
            f.name == name.text && names.eq(params.iter().map(|p| &p.name))
        };
        if let Some(first) = earlier.iter().find(same) {
            self.report(errors::duplicate(name.span, name.as_str(), first.span));
        }
    }

    fn same_type(
        &mut self,
        wanted: &Ty,
        found: &Ty,
        bindings: &Bindings,
        span: syntax::source::Span,
    ) {
        let wanted = self
            .module
            .types
            .substitute(wanted, &|id| bindings.get(&id).cloned());
        if wanted != *found && wanted != Ty::Missing && *found != Ty::Missing {
            let (wanted, found) = (self.show(&wanted), self.show(found));
            self.report(errors::type_mismatch(span, &wanted, &found));
        }
    }
}
