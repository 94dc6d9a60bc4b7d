//! Checks of everything with a body: functions, actions, controls and parsers.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use syntax::ast::{self, DeclKind, Direction};
use syntax::source::Span;

use super::call::arc;
use super::rules::ParamsOf;
use super::scope::{FnTemplate, Symbol, TypeSymbol};
use super::stmt::always_returns;
use super::{Checked, Checker, Context, Place, shared};
use crate::errors;
use crate::hir::{
    Action, ActionId, Block, Expr, ExprKind, FuncId, Function, Keyset, Local, State, Stmt,
    StmtKind, Target, Transition, VarId, VarKind,
};
use crate::types::{BlockId, BlockKind, FnSig, ParamSig, Ty};

impl Checker {
    /// Declares parameters in the current scope, and returns their variables. `action` is true if they are
    /// parameters of an action.
    fn declare_params(
        &mut self,
        params: &[ast::Param],
        sigs: &[ParamSig],
        action: bool,
    ) -> Vec<VarId> {
        let mut ids = Vec::new();
        for (param, sig) in params.iter().zip(sigs) {
            let kind = Checked::param_kind(param.direction, action);
            let id = self.new_var(
                arc(&param.name),
                sig.ty.clone(),
                kind,
                shared(&param.annotations),
                param.name.span,
            );
            self.record_name(&param.name, &Symbol::Var(id));
            // Duplicates were reported when the signature was made.
            let _ = self
                .scopes
                .declare(param.name.text.clone(), Symbol::Var(id), param.name.span);
            ids.push(id);
        }
        ids
    }

    fn body_context(&self, place: Place, ret: Ty) -> Context {
        Context {
            place,
            ret,
            loops: 0,
            block: self.context.block,
        }
    }

    /// Checks the body of the generic function `template` with `types` as its type arguments, in the scopes
    /// that were open at its declaration. Adds the result to the module as a function of its own and returns
    /// the function's id.
    pub(super) fn function_body(&mut self, template: &FnTemplate, types: &[Ty]) -> FuncId {
        let inner = self.scopes.split_off(template.depth);
        let context = self.body_context(Place::Function, Ty::Void);
        let function = self.within(context, |c| {
            c.scoped(|c| c.function_in_scope(template, types))
        });
        self.scopes.restore(inner);
        let id = FuncId(self.module.functions.len() as u32);
        self.module.functions.push(function);
        id
    }

    fn function_in_scope(&mut self, template: &FnTemplate, types: &[Ty]) -> Function {
        let signature = &template.decl.signature;
        for (name, ty) in signature.type_params.iter().zip(types) {
            self.declare_type(name, TypeSymbol::Plain(ty.clone()));
        }
        let sigs = self.param_sigs(&signature.params, ParamsOf::Function);
        let params = self.declare_params(&signature.params, &sigs, false);
        let ret = self.resolve(&signature.return_type);
        self.context.ret = ret.clone();
        let body = self.block(&template.decl.body);
        if !matches!(ret, Ty::Void | Ty::Missing) && !always_returns(&body) {
            self.report(errors::missing_return(
                signature.name.span,
                signature.name.as_str(),
            ));
        }
        Function {
            name: arc(&signature.name),
            params,
            ret,
            body,
        }
    }

    /// Declares an action and checks its parameters and body. `global` is true at the top level.
    pub(super) fn action(
        &mut self,
        decl: &ast::ActionDecl,
        annotations: &[ast::Annotation],
        global: bool,
    ) {
        let sigs = self.param_sigs(&decl.params, ParamsOf::Action);
        let directed = sigs
            .iter()
            .take_while(|p| p.direction != Direction::None)
            .count();
        if let Some(param) = sigs[directed..]
            .iter()
            .find(|p| p.direction != Direction::None)
        {
            self.report(errors::action_param_order(param.span, &param.name));
        }
        let sig = Rc::new(FnSig {
            name: arc(&decl.name),
            type_params: Vec::new(),
            params: sigs,
            ret: Ty::Void,
            annotations: shared(annotations),
            span: decl.name.span,
        });
        let context = self.body_context(Place::Action, Ty::Void);
        let (params, body) = self.within(context, |c| {
            c.scoped(|c| {
                let params = c.declare_params(&decl.params, &sig.params, true);
                (params, c.block(&decl.body))
            })
        });
        let id = ActionId(self.module.actions.len() as u32);
        self.module.actions.push(Action {
            name: arc(&decl.name),
            annotations: shared(annotations),
            global,
            params,
            directed,
            sig,
            body,
            span: decl.name.span,
        });
        self.declare(&decl.name, Symbol::Action(id));
    }

    /// Declares a parser or control with the signatures of its type and constructor, still without its body,
    /// and returns its id. Reports one with type parameters, which is not allowed, and returns `None`.
    fn begin_block(
        &mut self,
        ty: &ast::BlockType,
        constructor: &[ast::Param],
        is_parser: bool,
    ) -> Option<BlockId> {
        if let Some(param) = ty.type_params.first() {
            self.report(errors::generic_block(param.span, ty.name.as_str()));
            self.declare(&ty.name, Symbol::Missing);
            return None;
        }
        let make = |c: &mut Checker, params: &[ast::Param], of: ParamsOf| {
            Rc::new(FnSig {
                name: arc(&ty.name),
                type_params: Vec::new(),
                params: c.param_sigs(params, of),
                ret: Ty::Void,
                annotations: Rc::from([]),
                span: ty.name.span,
            })
        };
        let of = ParamsOf::Block {
            is_parser,
            has_body: true,
        };
        let sig = make(self, &ty.params, of);
        let of = ParamsOf::BlockConstructor { is_parser };
        let constructor_sig = make(self, constructor, of);
        self.check_constructor(&constructor_sig.params);
        let id = BlockId(self.module.blocks.len() as u32);
        self.module.types.block_names.push(arc(&ty.name));
        self.module.blocks.push(Block {
            name: arc(&ty.name),
            is_parser,
            annotations: Rc::from([]),
            params: Vec::new(),
            sig,
            constructor_params: Vec::new(),
            constructor: constructor_sig,
            locals: Vec::new(),
            apply: Rc::from([]),
            states: Vec::new(),
            span: ty.name.span,
        });
        Some(id)
    }

    /// Declares the parameters and constructor parameters of a parser or control in the current scope.
    fn block_params(&mut self, id: BlockId, ty: &ast::BlockType, constructor: &[ast::Param]) {
        let (sig, constructor_sig) = (
            self.module.block(id).sig.clone(),
            self.module.block(id).constructor.clone(),
        );
        let params = self.declare_params(&ty.params, &sig.params, false);
        let mut given = Vec::new();
        for (param, sig) in constructor.iter().zip(&constructor_sig.params) {
            let annotations = shared(&param.annotations);
            let kind = VarKind::ConstructorParam;
            let var = self.new_var(
                arc(&param.name),
                sig.ty.clone(),
                kind,
                annotations,
                param.name.span,
            );
            self.declare(&param.name, Symbol::Var(var));
            given.push(var);
        }
        let block = &mut self.module.blocks[id.index()];
        block.params = params;
        block.constructor_params = given;
    }

    /// Declares a control and checks its local declarations and its apply block.
    pub(super) fn control(
        &mut self,
        decl: &ast::ControlDecl,
        annotations: &[ast::Annotation],
        span: Span,
    ) {
        let Some(id) = self.begin_block(&decl.ty, &decl.constructor_params, false) else {
            return;
        };
        let context = Context {
            block: Some(BlockKind::Control),
            ..self.body_context(Place::Declaration, Ty::Void)
        };
        let (locals, apply) = self.within(context, |c| {
            c.scoped(|c| {
                c.block_params(id, &decl.ty, &decl.constructor_params);
                c.scopes.push();
                let locals = c.locals(&decl.locals);
                let context = c.body_context(Place::Apply, Ty::Void);
                let apply = c.within(context, |c| c.block(&decl.apply));
                c.scopes.pop();
                (locals, apply)
            })
        });
        let block = &mut self.module.blocks[id.index()];
        block.annotations = shared(annotations);
        block.locals = locals;
        block.apply = apply;
        let _ = span;
        self.declare_type(&decl.ty.name, TypeSymbol::Block(id));
    }

    /// Checks the local declarations of a parser or control in order and enters their names into the scope.
    /// Returns those that have an effect at run time: variables, instances and tables.
    fn locals(&mut self, decls: &[ast::Decl]) -> Vec<Local> {
        let mut locals = Vec::new();
        for decl in decls {
            let annotations = &decl.annotations;
            match &decl.kind {
                DeclKind::Const(constant) => self.constant(constant),
                DeclKind::Var(var) => {
                    let context = Context {
                        place: Place::Declaration,
                        ..self.context.clone()
                    };
                    let (id, init) = self.within(context, |c| c.variable(var, annotations));
                    locals.push(Local::Var(id, init));
                }
                DeclKind::Instantiation(instance) => {
                    if let Some(id) = self.instance(instance, annotations) {
                        locals.push(Local::Instance(id));
                    }
                }
                DeclKind::Action(action) => self.action(action, annotations, false),
                DeclKind::Table(table) => {
                    if let Some(id) = self.table(table, annotations) {
                        locals.push(Local::Table(id));
                    }
                }
                DeclKind::ValueSet(set) => {
                    let ty = self.resolve(&set.ty);
                    let size = self.infer(&set.size, Some(&Ty::Int));
                    let size = self.require_static(size, "the size of a value set");
                    self.value_set_type(&ty, set.ty.span);
                    let kind = VarKind::ValueSet(Rc::new(size));
                    let ty = Ty::ValueSet(Rc::new(ty));
                    let id =
                        self.new_var(arc(&set.name), ty, kind, shared(annotations), set.name.span);
                    self.declare(&set.name, Symbol::Var(id));
                }
                _ => self.report(errors::declaration_place(decl.span)),
            }
        }
        locals
    }

    /// Declares a parser and checks its local declarations and its states.
    pub(super) fn parser(
        &mut self,
        decl: &ast::ParserDecl,
        annotations: &[ast::Annotation],
        span: Span,
    ) {
        let Some(id) = self.begin_block(&decl.ty, &decl.constructor_params, true) else {
            return;
        };
        let names = self.state_names(decl);
        let context = Context {
            block: Some(BlockKind::Parser),
            ..self.body_context(Place::Declaration, Ty::Void)
        };
        let (locals, states) = self.within(context, |c| {
            c.scoped(|c| {
                c.block_params(id, &decl.ty, &decl.constructor_params);
                c.scopes.push();
                let locals = c.locals(&decl.locals);
                let states = c.states(decl, &names);
                c.check_end(decl, &states);
                c.scopes.pop();
                (locals, states)
            })
        });
        let block = &mut self.module.blocks[id.index()];
        block.annotations = shared(annotations);
        block.locals = locals;
        block.states = states;
        let _ = span;
        self.declare_type(&decl.ty.name, TypeSymbol::Block(id));
    }

    fn states(
        &mut self,
        decl: &ast::ParserDecl,
        names: &BTreeMap<Arc<str>, (usize, Span)>,
    ) -> Vec<State> {
        let mut states: Vec<Option<State>> = vec![None; names.len()];
        let context = self.body_context(Place::State, Ty::Void);
        for state in &decl.states {
            let checked = self.within(context.clone(), |c| c.scoped(|c| c.state(state, names)));
            if let Some((i, _)) = names.get(&state.name.text) {
                states[*i] = Some(checked);
            }
        }
        states.into_iter().flatten().collect()
    }

    fn state(
        &mut self,
        state: &ast::ParserState,
        names: &BTreeMap<Arc<str>, (usize, Span)>,
    ) -> State {
        let body = self.statements(&state.body).to_vec();
        let transition = match &state.transition {
            None => {
                self.report(errors::no_transition(state.name.span, state.name.as_str()));
                Transition::Goto(Target::Reject)
            }
            Some(transition) => match &transition.kind {
                ast::TransitionKind::State(name) => Transition::Goto(self.target(name, names)),
                ast::TransitionKind::Select { args, cases } => {
                    self.select_transition(args, cases, names)
                }
            },
        };
        State {
            name: arc(&state.name),
            body,
            transition,
            span: state.name.span,
        }
    }
}

impl Checked {
    /// Reports a parser that can never end. A parser can end if a reachable state accepts, rejects, has a
    /// select that does not cover all values, or has a statement that can fail (such as an extract from a
    /// packet that is too short).
    fn check_end(&mut self, decl: &ast::ParserDecl, states: &[State]) {
        let mut reached = vec![false; states.len()];
        let mut open = vec![0];
        while let Some(i) = open.pop() {
            let Some(state) = states.get(i) else { return };
            if std::mem::replace(&mut reached[i], true) {
                continue;
            }
            if state.body.iter().any(may_reject) {
                return;
            }
            let targets: Vec<Target> = match &state.transition {
                Transition::Goto(target) => vec![*target],
                // A value that no case covers is rejected.
                Transition::Select { cases, .. } => {
                    let covered = cases
                        .iter()
                        .any(|(sets, _)| sets.iter().all(|s| matches!(s, Keyset::Any)));
                    if !covered {
                        return;
                    }
                    cases.iter().map(|(_, target)| *target).collect()
                }
            };
            for target in targets {
                match target {
                    Target::State(next) => open.push(next),
                    Target::Accept | Target::Reject => return,
                }
            }
        }
        if !states.is_empty() {
            let name = &decl.ty.name;
            self.report(errors::never_ends(name.span, name.as_str()));
        }
    }

    /// Returns the position and the place in the source of each state, by name; `start` has position 0.
    /// Reports a missing `start`, reserved names and duplicates.
    fn state_names(&mut self, decl: &ast::ParserDecl) -> BTreeMap<Arc<str>, (usize, Span)> {
        let mut names: BTreeMap<Arc<str>, (usize, Span)> = BTreeMap::new();
        let start = decl.states.iter().find(|s| s.name.as_str() == "start");
        if start.is_none() {
            self.report(errors::no_start_state(
                decl.ty.name.span,
                decl.ty.name.as_str(),
            ));
        }
        for state in &decl.states {
            self.record_state(&state.name, &decl.ty.name);
        }
        for state in start
            .into_iter()
            .chain(decl.states.iter().filter(|s| s.name.as_str() != "start"))
        {
            let position = names.len();
            names
                .entry(state.name.text.clone())
                .or_insert((position, state.name.span));
        }
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        for state in &decl.states {
            let name = state.name.as_str();
            if matches!(name, "accept" | "reject") {
                self.report(errors::reserved_state(state.name.span, name));
            } else if let Some(first) = seen.insert(name, state.name.span) {
                self.report(errors::duplicate(state.name.span, name, first));
            }
        }
        names
    }

    pub(super) fn target(
        &mut self,
        name: &ast::Name,
        names: &BTreeMap<Arc<str>, (usize, Span)>,
    ) -> Target {
        self.offer_states(name.as_str(), names.keys());
        if let Some((_, place)) = names.get(&name.text) {
            self.used(name.span, *place);
        }
        match (name.as_str(), names.get(&name.text)) {
            ("accept", _) => Target::Accept,
            ("reject", _) => Target::Reject,
            (_, Some((i, _))) => Target::State(*i),
            (text, None) => {
                let known = names.keys().map(|n| &**n).chain(["accept", "reject"]);
                let similar = self.closest(text, known);
                self.report(errors::unknown_state(name.span, text, similar.as_deref()));
                Target::Reject
            }
        }
    }
}

/// Returns whether a statement may end the parser by an error: true for every statement except assignments
/// and declarations whose expressions consist only of variables, fields and operators.
fn may_reject(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Assign(target, value) | StmtKind::AssignOp(_, target, value) => {
            !is_plain(target) || !is_plain(value)
        }
        StmtKind::Declare(_, init) => init.as_ref().is_some_and(|e| !is_plain(e)),
        _ => true,
    }
}

fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Bool(_) => true,
        ExprKind::Field(a, _) | ExprKind::Cast(a) | ExprKind::Unary(_, a) => is_plain(a),
        ExprKind::Binary(_, a, b) => is_plain(a) && is_plain(b),
        _ => false,
    }
}
