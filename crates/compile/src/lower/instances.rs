//! Instances of externs, parsers and controls.

use std::rc::Rc;

use ir::Expr;
use syntax::ast;
use syntax::source::Span;

use super::control::applications;
use super::place::Value;
use super::stateful::is_port_state;
use super::{
    Binding, BlockInstance, Body, ExternInfo, ExternKind, Object, ObjectId, control_plane_name,
};
use crate::errors;
use crate::hir::{self, Arg, CallTarget, ExprKind, Local, VarId, VarKind};
use crate::meaning::{self, Meaning};
use crate::types::{BlockId, Ty};

/// An instance of an extern type that is to be created.
pub(crate) struct NewInstance<'a> {
    /// Its control-plane name.
    pub name: &'a str,
    /// The type arguments.
    pub type_args: &'a [Ty],
    /// The constructor's arguments.
    pub args: &'a [Arg],
    /// The place of its declaration in the source.
    pub span: Span,
}

/// The outcome of the creation of an extern instance.
pub(crate) enum Made {
    /// An instance that the control plane sees.
    Visible(ExternKind),
    /// An instance that the control plane does not see.
    Own(Object),
    /// None: an error has been reported.
    Refused,
}

impl Body<'_, '_> {
    /// Creates the instance that the variable `var` declares. `path` is the control-plane name of the parser
    /// or control that contains the declaration; empty at the top level.
    pub(super) fn instance(&mut self, var: VarId, path: &str) -> ObjectId {
        let def = self.module.var(var);
        let VarKind::Instance(args) = &def.kind else {
            return self.new_object(Object::Refused);
        };
        let name = control_plane_name(path, &def.name, &def.annotations);
        match &def.ty {
            Ty::Block(block) => {
                let shared = self.current_is_shared() || self.applied_often(var);
                self.instantiate(*block, name, args, shared)
            }
            ty => self.extern_instance(ty, name, args, def.annotations.clone(), def.span),
        }
    }

    /// Creates an instance of the extern type `ty`. Reports an extern that the program declares itself and
    /// that therefore has no meaning.
    pub(super) fn extern_instance(
        &mut self,
        ty: &Ty,
        name: String,
        args: &[Arg],
        annotations: Rc<[ast::Annotation]>,
        span: Span,
    ) -> ObjectId {
        let Ty::Extern(id, type_args) = ty else {
            return self.new_object(Object::Refused);
        };
        let def = self.module.types.external(*id);
        // Constructors differ in the number of their parameters, or else in names alone.
        let mut alike = (def.constructors.iter()).filter(|c| c.sig.params.len() == args.len());
        let known = alike.all(|c| c.meaning.is_some());
        let Some(meaning) = def.meaning.filter(|_| known) else {
            self.report_own_extern(&def.name, &def.name, def.span, span);
            return self.new_object(Object::Refused);
        };
        let object = match self.made(meaning, &name, type_args, args, &annotations, span) {
            Made::Own(object) => object,
            Made::Refused => Object::Refused,
            Made::Visible(kind) => {
                self.info.externs.push(ExternInfo {
                    name,
                    kind,
                    annotations,
                    span,
                });
                Object::Extern(self.info.externs.len() - 1)
            }
        };
        self.new_object(object)
    }

    fn made(
        &mut self,
        meaning: Meaning<meaning::Object, usize>,
        name: &str,
        type_args: &[Ty],
        args: &[Arg],
        annotations: &[ast::Annotation],
        span: Span,
    ) -> Made {
        use meaning::Object as O;
        let or_refused = |kind: Option<ExternKind>| kind.map_or(Made::Refused, Made::Visible);
        let meaning = match meaning {
            Meaning::Common(meaning) => meaning,
            Meaning::Own(row) => {
                let make = self.externs().objects[row].object.own();
                let make = make.expect("the row's own");
                let new = NewInstance {
                    name,
                    type_args,
                    args,
                    span,
                };
                return make(self, &new);
            }
        };
        match meaning {
            O::Register if !self.begins_with_zero(args) => {
                let what = "a register whose cells do not begin with zero";
                self.report(errors::unsupported(span, what));
                Made::Refused
            }
            O::Register => or_refused(self.register(name, type_args, args, annotations, span)),
            O::Counter => {
                let size = self.constant_arg(args, 0, "the size of a counter");
                let counter = self.new_counter(name, args, 1, Some(size.unwrap_or(0)));
                Made::Visible(ExternKind::Counter(counter, type_args.last().cloned()))
            }
            O::DirectCounter => Made::Visible(ExternKind::DirectCounter(
                self.new_counter(name, args, 0, None),
            )),
            O::Meter => {
                let size = self.constant_arg(args, 0, "the size of a meter");
                let meter = self.new_meter(name, args, 1, Some(size.unwrap_or(0)));
                Made::Visible(ExternKind::Meter(meter, type_args.first().cloned()))
            }
            O::DirectMeter => {
                Made::Visible(ExternKind::DirectMeter(self.new_meter(name, args, 0, None)))
            }
            O::ActionProfile => Made::Visible(self.action_profile(name, args)),
            O::ActionSelector => {
                let algorithm = self.fixed_algorithm(args, 0, span);
                or_refused(algorithm.and_then(|a| self.action_selector(name, a, args, span)))
            }
            O::Checksum16 => Made::Own(Object::Checksum16),
            O::PacketIn => Made::Own(Object::PacketIn),
            O::PacketOut => Made::Own(Object::PacketOut),
        }
    }

    /// Returns whether the cells of a register are zero at first: the argument for the initial value, if
    /// there is one, is constant zero.
    fn begins_with_zero(&mut self, args: &[Arg]) -> bool {
        let leaves = self.arg(args, 1).leaves();
        (leaves.iter()).all(|leaf| matches!(leaf, Expr::Const(bits) if bits.is_zero()))
    }

    fn register(
        &mut self,
        name: &str,
        type_args: &[Ty],
        args: &[Arg],
        annotations: &[ast::Annotation],
        span: Span,
    ) -> Option<ExternKind> {
        let size = self
            .constant_arg(args, 0, "the size of a register")
            .unwrap_or(0);
        let ty = type_args.first()?.clone();
        let Some(width) = self.module.types.packed_width(&ty).filter(|w| *w > 0) else {
            let shown = self.module.types.show(&ty);
            self.report(errors::variable_type(span, &shown));
            return None;
        };
        let port_state = is_port_state(annotations);
        let id = ir::RegisterId(self.program.registers.len() as u32);
        self.program.registers.push(ir::Register {
            name: name.to_string(),
            id: 0,
            width,
            size,
            port_state,
        });
        Some(ExternKind::Register(id, ty, type_args.get(1).cloned()))
    }

    /// Adds a counter to the program and returns its id. The argument at position `unit` says whether it
    /// counts packets, bytes or both. `size` is its number of cells, `None` for a direct counter.
    fn new_counter(
        &mut self,
        name: &str,
        args: &[Arg],
        unit: usize,
        size: Option<u64>,
    ) -> ir::CounterId {
        let unit = match self.constant_arg(args, unit, "the type of a counter") {
            Some(0) => ir::CounterUnit::Packets,
            Some(1) => ir::CounterUnit::Bytes,
            _ => ir::CounterUnit::Both,
        };
        let id = ir::CounterId(self.program.counters.len() as u32);
        self.program.counters.push(ir::Counter {
            name: name.to_string(),
            id: 0,
            unit,
            size,
        });
        id
    }

    /// Adds a meter to the program and returns its id. The argument at position `unit` says whether it
    /// measures packets or bytes. `size` is its number of cells, `None` for a direct meter.
    fn new_meter(
        &mut self,
        name: &str,
        args: &[Arg],
        unit: usize,
        size: Option<u64>,
    ) -> ir::MeterId {
        let bytes = self.constant_arg(args, unit, "the type of a meter") == Some(1);
        let id = ir::MeterId(self.program.meters.len() as u32);
        self.program.meters.push(ir::Meter {
            name: name.to_string(),
            id: 0,
            bytes,
            size,
        });
        id
    }

    /// Creates an instance of the parser or control `block`, with all instances declared inside of it. `path`
    /// is its control-plane name, `args` are the constructor's arguments. `shared` is true if the instance is
    /// applied in more than one place.
    pub(super) fn instantiate(
        &mut self,
        block: BlockId,
        path: String,
        args: &[Arg],
        shared: bool,
    ) -> ObjectId {
        let module = self.module;
        let def = module.block(block);
        let values: Vec<Value> = args
            .iter()
            .zip(&def.constructor_params)
            .map(|(arg, param)| self.constructor_arg(arg, &path, *param))
            .collect();
        let instance = |path: &str, bindings| {
            Object::Block(Rc::new(BlockInstance {
                block,
                path: path.to_string(),
                bindings,
                shared,
            }))
        };
        let object = self.new_object(instance(&path, Vec::new()));
        let values = values.into_iter().map(Binding::Value);
        let mut bindings: Vec<_> = def.constructor_params.iter().copied().zip(values).collect();
        let mut inner = self.inner(Some(object), bindings.iter().cloned().collect(), Vec::new());
        for local in &def.locals {
            if let Local::Instance(var) = local
                && !inner.exhausted()
            {
                inner.spend(16);
                let made = inner.instance(*var, &path);
                let binding = Binding::Value(Value::Object(made));
                bindings.push((*var, binding.clone()));
                inner.bind_name(*var, binding);
            }
        }
        self.complete_object(object, instance(&path, bindings));
        object
    }

    /// Evaluates a constructor's argument and returns its value. An instance that the argument creates gets
    /// the name of the parameter `param`, below `path`.
    fn constructor_arg(&mut self, arg: &Arg, path: &str, param: VarId) -> Value {
        if let Some(hir::Expr {
            kind: ExprKind::Call(call),
            ty,
            span,
        }) = arg.expr()
            && matches!(call.target, CallTarget::Construct)
        {
            let def = self.module.var(param);
            let name = control_plane_name(path, &def.name, &def.annotations);
            let object = match ty {
                Ty::Block(block) => self.instantiate(*block, name, &call.args, true),
                ty => self.extern_instance(ty, name, &call.args, Rc::from([]), *span),
            };
            return Value::Object(object);
        }
        self.arg(std::slice::from_ref(arg), 0)
    }

    /// Returns whether the current control applies the instance `var` at more than one place; also true in a
    /// parser or where the number of places is unknown.
    fn applied_often(&self, var: VarId) -> bool {
        let Some(instance) = self.block_instance(self.scope.instance) else {
            return true;
        };
        let block = self.module.block(instance.block);
        let applies = |t: &CallTarget| matches!(t, CallTarget::Block(v) if *v == var);
        !block.is_parser && applications(&block.apply, &applies) > 1
    }
}
