//! Top-level declarations, constants, variables and instances.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use syntax::ast::{self, DeclKind};

use super::call::arc;
use super::rules::ParamsOf;
use super::scope::{FnSymbol, FnTemplate, Symbol, TypeSymbol};
use super::{Checked, Checker, shared};
use crate::errors;
use crate::hir::{Expr, VarId, VarKind};
use crate::types::{
    BlockKind, BlockTypeDef, BlockTypeId, Declared, DefaultId, ExternDef, ExternId, FnSig,
    ParamSig, StructKind, Ty, TypeParamId,
};

impl Checker {
    /// Checks a declaration at the top level and enters it into the scope. Reports a `main` that is no instance.
    pub(super) fn top_level(&mut self, decl: &ast::Decl) {
        let annotations = &decl.annotations;
        if let Some(name) = decl.name().filter(|n| n.as_str() == "main")
            && !matches!(
                decl.kind,
                DeclKind::Instantiation(_) | DeclKind::Function(_) | DeclKind::ExternFunction(_)
            )
        {
            self.report(errors::main_kind(name.span, "a declaration"));
        }
        match &decl.kind {
            DeclKind::Const(constant) => self.constant(constant),
            DeclKind::Var(var) => {
                self.report(errors::top_level_variable(decl.span));
                let _ = self.variable(var, annotations);
            }
            DeclKind::Instantiation(instance) => {
                if let Some(id) = self.instance(instance, annotations) {
                    self.check_main(id);
                    self.module.instances.push(id);
                    if matches!(self.module.var(id).ty, Ty::Block(_) | Ty::BlockType(..)) {
                        self.top_level_instances.insert(id);
                    }
                }
            }
            DeclKind::Function(function) => self.function(function, annotations),
            DeclKind::ExternFunction(signature) => {
                let sig = self.scoped(|c| c.signature(signature, annotations, ParamsOf::Extern));
                let declared = Declared {
                    meaning: self.origins.function(&sig, &self.module.types),
                    sig: Rc::new(sig),
                };
                self.declare(
                    &signature.name,
                    Symbol::Functions(vec![FnSymbol::Extern(Rc::new(declared))]),
                );
            }
            DeclKind::Extern(external) => self.external(external, annotations),
            DeclKind::Action(action) => self.action(action, annotations, true),
            DeclKind::Parser(parser) => self.parser(parser, annotations, decl.span),
            DeclKind::Control(control) => self.control(control, annotations, decl.span),
            DeclKind::ParserType(block) => self.block_type(block, BlockKind::Parser, annotations),
            DeclKind::ControlType(block) => self.block_type(block, BlockKind::Control, annotations),
            DeclKind::Package(block) => self.block_type(block, BlockKind::Package, annotations),
            DeclKind::Typedef(typedef) => self.typedef(typedef),
            DeclKind::NewType(new_type) => self.new_type(new_type, annotations),
            DeclKind::Header(decl) => self.struct_like(decl, StructKind::Header, annotations),
            DeclKind::HeaderUnion(decl) => self.struct_like(decl, StructKind::Union, annotations),
            DeclKind::Struct(decl) => self.struct_like(decl, StructKind::Struct, annotations),
            DeclKind::Enum(decl) => self.enumeration(decl, annotations),
            DeclKind::Error(names) => self.error_names(names),
            DeclKind::MatchKind(names) => self.match_kinds(names),
            DeclKind::ValueSet(_) | DeclKind::Table(_) => {
                self.report(errors::declaration_place(decl.span))
            }
        }
    }

    fn error_names(&mut self, names: &[ast::Name]) {
        for name in names {
            self.record_member(&"error".into(), name, None);
            if !self.declared_errors.insert(name.text.clone()) {
                self.report(errors::duplicate_member(name.span, name.as_str(), "error"));
            }
        }
    }

    /// Checks `const T NAME = value;` and enters the constant into the scope.
    pub(super) fn constant(&mut self, decl: &ast::ConstDecl) {
        let ty = self.resolve(&decl.ty);
        let value = self.expect(&decl.value, &ty);
        let value = self.require_literal(value, "the value of a constant");
        let symbol = if value.ty == Ty::Missing {
            Symbol::Missing
        } else {
            Symbol::Const(Rc::new(value))
        };
        self.declare(&decl.name, symbol);
    }

    /// Declares a variable and returns its id and its initial value (`None` if it has none). Reports a type
    /// that variables cannot have.
    pub(super) fn variable(
        &mut self,
        decl: &ast::VarDecl,
        annotations: &[ast::Annotation],
    ) -> (VarId, Option<Expr>) {
        let mut ty = self.resolve(&decl.ty);
        if matches!(ty, Ty::Extern(..) | Ty::Block(_) | Ty::BlockType(..)) {
            let shown = self.show(&ty);
            self.report(errors::instance_as_variable(decl.ty.span, &shown));
            ty = Ty::Missing;
        }
        if matches!(
            ty,
            Ty::Int | Ty::Void | Ty::String | Ty::MatchKind | Ty::Any
        ) {
            let shown = self.show(&ty);
            self.report(errors::variable_type(decl.ty.span, &shown));
            ty = Ty::Missing;
        }
        let init = decl.init.as_ref().map(|e| self.expect(e, &ty));
        let id = self.new_var(
            arc(&decl.name),
            ty,
            VarKind::Local,
            shared(annotations),
            decl.name.span,
        );
        self.declare(&decl.name, Symbol::Var(id));
        (id, init)
    }

    /// Declares an instance of an extern, parser, control or package. Returns `None` if its type or arguments
    /// are wrong.
    pub(super) fn instance(
        &mut self,
        decl: &ast::Instantiation,
        annotations: &[ast::Annotation],
    ) -> Option<VarId> {
        let ty = self.resolve(&decl.ty);
        self.check_instance_place(&ty, decl.name.span);
        let span = decl.ty.span.to(decl.name.span);
        let Some((ty, args)) = self.instantiate(ty, decl.ty.span, &decl.args, span) else {
            self.declare(&decl.name, Symbol::Missing);
            return None;
        };
        self.check_static(&args);
        self.instance_body(decl, &ty);
        let kind = VarKind::Instance(args.into_list().into());
        let id = self.new_var(
            arc(&decl.name),
            ty,
            kind,
            shared(annotations),
            decl.name.span,
        );
        self.declare(&decl.name, Symbol::Var(id));
        Some(id)
    }

    fn type_params(&mut self, names: &[ast::Name]) -> Vec<TypeParamId> {
        let mut ids = Vec::new();
        for name in names {
            let id = self.new_type_param(name);
            self.declare_type(name, TypeSymbol::Plain(Ty::Param(id)));
            ids.push(id);
        }
        ids
    }

    /// Returns the signature of each parameter: its name, direction, type and default value. Checks each by
    /// the rules for parameters of `of`, such as an action or a package, and reports two with the same name.
    pub(super) fn param_sigs(&mut self, params: &[ast::Param], of: ParamsOf) -> Vec<ParamSig> {
        let mut sigs: Vec<ParamSig> = Vec::new();
        for param in params {
            let ty = self.resolve(&param.ty);
            if let Some(first) = sigs.iter().find(|p| p.name == param.name.text) {
                self.report(errors::duplicate(
                    param.name.span,
                    param.name.as_str(),
                    first.span,
                ));
            }
            self.check_param(param, &ty, of);
            self.record_param(param, &ty);
            let default = param.default.as_ref().map(|e| {
                let value = self.expect(e, &ty);
                let value = self.require_literal(value, "a default value");
                self.module.defaults.push(value);
                DefaultId(self.module.defaults.len() as u32 - 1)
            });
            sigs.push(ParamSig {
                name: param.name.text.clone(),
                direction: param.direction,
                ty,
                optional: param.is_optional(),
                default,
                span: param.span,
            });
        }
        sigs
    }

    /// Returns a function's signature with all types resolved, and declares its type parameters in the current scope.
    pub(super) fn signature(
        &mut self,
        signature: &ast::Signature,
        annotations: &[ast::Annotation],
        of: ParamsOf,
    ) -> FnSig {
        let type_params = self.type_params(&signature.type_params);
        let params = self.param_sigs(&signature.params, of);
        FnSig {
            name: arc(&signature.name),
            type_params,
            params,
            ret: self.resolve(&signature.return_type),
            annotations: shared(annotations),
            span: signature.name.span,
        }
    }

    fn function(&mut self, decl: &ast::FunctionDecl, annotations: &[ast::Annotation]) {
        let errors = self.error_count();
        let sig = self.scoped(|c| c.signature(&decl.signature, annotations, ParamsOf::Function));
        if self.error_count() > errors {
            return self.declare(&decl.signature.name, Symbol::Missing);
        }
        let template = Rc::new(FnTemplate {
            sig: Rc::new(sig),
            decl: decl.clone(),
            index: self.generics.templates,
            depth: self.scopes.depth(),
        });
        self.generics.templates += 1;
        let symbol = Symbol::Functions(vec![FnSymbol::Template(template.clone())]);
        self.declare(&decl.signature.name, symbol);
        // A generic function is checked for types of which nothing is known here, and again where it is used.
        let types: Vec<Ty> = template
            .sig
            .type_params
            .iter()
            .map(|id| Ty::Param(*id))
            .collect();
        self.generics.checking.push(template.index);
        let id = self.function_body(&template, &types);
        self.generics.checking.pop();
        if types.is_empty() {
            self.generics.functions.insert((template.index, types), id);
        } else if self.error_count() > errors {
            self.generics.broken.insert(template.index);
        }
    }

    fn external(&mut self, decl: &ast::ExternDecl, annotations: &[ast::Annotation]) {
        let id = ExternId(self.module.types.externs.len() as u32);
        self.module.types.externs.push(ExternDef {
            name: arc(&decl.name),
            annotations: shared(annotations),
            meaning: None,
            type_params: Vec::new(),
            constructors: Vec::new(),
            methods: Vec::new(),
            abstract_methods: Vec::new(),
            span: decl.name.span,
        });
        self.declare_type(&decl.name, TypeSymbol::Extern(id));
        let row = self
            .origins
            .object(decl.name.as_str(), decl.type_params.len(), decl.name.span);
        let (type_params, constructors, methods, abstract_methods) = self.scoped(|c| {
            let type_params = c.type_params(&decl.type_params);
            let (mut constructors, mut methods): (Vec<Rc<FnSig>>, Vec<Rc<FnSig>>) =
                (Vec::new(), Vec::new());
            let mut abstract_methods = Vec::new();
            for member in &decl.members {
                match &member.kind {
                    ast::ExternMemberKind::Constructor { name, params } => {
                        let params = c.param_sigs(params, ParamsOf::ExternConstructor);
                        c.check_constructor(&params);
                        c.check_overloads(&constructors, &params, name);
                        constructors.push(Rc::new(FnSig {
                            name: arc(name),
                            type_params: Vec::new(),
                            params,
                            ret: Ty::Void,
                            annotations: shared(&member.annotations),
                            span: name.span,
                        }));
                    }
                    ast::ExternMemberKind::Method {
                        signature,
                        is_abstract,
                    } => {
                        let sig = c.scoped(|c| {
                            c.signature(signature, &member.annotations, ParamsOf::Extern)
                        });
                        if sig.ret == Ty::Int {
                            let span = signature.return_type.span;
                            c.report(errors::return_type(span, "int"));
                        }
                        if sig.name == decl.name.text {
                            c.report(errors::constructor_type(signature.name.span, &sig.name));
                        }
                        c.check_overloads(&methods, &sig.params, &signature.name);
                        let sig = Rc::new(sig);
                        if *is_abstract {
                            abstract_methods.push(sig.clone());
                        }
                        methods.push(sig);
                    }
                }
            }
            (type_params, constructors, methods, abstract_methods)
        });
        let types = &self.module.types;
        let constructors = constructors.into_iter().map(|sig| Declared {
            meaning: row.and_then(|(_, row)| row.constructor(&sig, types)),
            sig,
        });
        let methods = methods.into_iter().map(|sig| {
            let meaning = row.and_then(|(at, row)| row.method(at, &sig, types));
            Rc::new(Declared { sig, meaning })
        });
        let (constructors, methods): (Vec<_>, Vec<_>) = (constructors.collect(), methods.collect());
        constructors.iter().for_each(|c| self.record_method(&c.sig));
        methods.iter().for_each(|m| self.record_method(&m.sig));
        let def = &mut self.module.types.externs[id.index()];
        def.meaning = row.map(|(at, row)| row.object.with(at));
        def.type_params = type_params;
        def.constructors = constructors;
        def.methods = methods;
        def.abstract_methods = abstract_methods;
    }

    fn block_type(
        &mut self,
        decl: &ast::BlockType,
        kind: BlockKind,
        annotations: &[ast::Annotation],
    ) {
        let of = match kind {
            BlockKind::Package => ParamsOf::Package,
            kind => ParamsOf::Block {
                is_parser: kind == BlockKind::Parser,
                has_body: false,
            },
        };
        let (type_params, params) = self.scoped(|c| {
            (
                c.type_params(&decl.type_params),
                c.param_sigs(&decl.params, of),
            )
        });
        if kind == BlockKind::Package {
            self.check_constructor(&params);
        }
        let sig = FnSig {
            name: arc(&decl.name),
            type_params,
            params,
            ret: Ty::Void,
            annotations: shared(annotations),
            span: decl.name.span,
        };
        let id = BlockTypeId(self.module.types.block_types.len() as u32);
        self.module.types.block_types.push(BlockTypeDef {
            kind,
            sig: Rc::new(sig),
        });
        self.declare_type(&decl.name, TypeSymbol::BlockType(id));
    }
}

impl Checked {
    /// Enters the error constants of the whole program before its other declarations, since P4 knows each in the
    /// whole program, even before its declaration (P4_16 1.2.5, 7.1.2).
    pub(super) fn enter_errors(&mut self, program: &ast::Program) {
        let declared = program.decls.iter().filter_map(|decl| match &decl.kind {
            DeclKind::Error(names) => Some(names),
            _ => None,
        });
        let errors = &mut self.module.types.errors;
        let core: BTreeSet<Arc<str>> = errors.iter().cloned().collect();
        for name in declared.flatten() {
            if self.known_errors.insert(name.text.clone()) && !core.contains(&name.text) {
                errors.push(name.text.clone());
            }
        }
    }

    fn match_kinds(&mut self, names: &[ast::Name]) {
        for name in names {
            self.record_member(&"match_kind".into(), name, None);
            if self.module.types.match_kinds.contains(&name.text) {
                self.report(errors::duplicate_member(
                    name.span,
                    name.as_str(),
                    "match_kind",
                ));
            } else {
                self.module.types.match_kinds.push(name.text.clone());
            }
        }
    }

    /// Reports a variable or instance with the name `main` that is not an instance of a package.
    fn check_main(&mut self, id: VarId) {
        let var = self.module.var(id);
        let is_package = matches!(&var.ty, Ty::BlockType(id, _)
            if self.module.types.block_types[id.index()].kind == BlockKind::Package);
        if &*var.name == "main" && !is_package && var.ty != Ty::Missing {
            let what = format!("an instance of `{}`", self.show(&var.ty));
            self.report(errors::main_kind(self.module.var(id).span, &what));
        }
    }
}
