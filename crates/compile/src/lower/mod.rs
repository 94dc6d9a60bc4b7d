//! Lowering: the checked program to IR.
//!
//! The blocks of the pipeline are instantiated and their bodies written out as statements over slots. Functions,
//! directly called actions, sub-parsers and sub-controls are inlined where they are called; structs, stacks and headers
//! become slots. Expressions with side effects are taken apart so that everything happens in the order the language
//! demands.
//!
//! The state of lowering is four types, each around the one before, so that a method's type says what it can touch:
//! [`unit::Context`] is what is given and never changes; [`unit::Unit`] is the program as far as it is lowered;
//! [`code::Code`] adds the statements being emitted; [`Body`] adds what is known in the body being lowered, and ends with it.
//!
//! Field writes are emitted here whether the header is valid or not; the pass [`crate::validity`] guards them after.

mod assign;
mod body;
mod bound;
pub(crate) mod build;
mod call;
mod code;
mod control;
pub(crate) mod core;
mod entries;
mod expr;
mod externs;
mod hash;
mod instances;
mod metered;
mod parser;
mod place;
pub(crate) mod room;
mod sequence;
mod stateful;
mod stmt;
mod storage;
mod unit;
mod value;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::rc::Rc;

pub(crate) use body::Body;
use code::Code;
pub(crate) use externs::{Call, MethodCall};
pub(crate) use instances::{Made, NewInstance};
pub(crate) use place::Value;
pub(crate) use room::{Room, room};
use unit::{Context, FieldListKey, Unit};

use ir::SlotId;
use ir::architecture::{Description, Parameter};
use syntax::Diagnostic;
use syntax::ast;
use syntax::source::{SourceMap, Span};

use crate::arch::{self, Instance, Pipeline};
use crate::errors;
use crate::hir::{self, Module, VarId};
use crate::types::{BlockId, Ty};
use place::{Lvalue, Place};

macro_rules! rooms {
    ($($(#[$only:meta])* $room:ident),*) => {
        $($(#[$only])* mod $room;)*

        /// The compiler's parts of all architectures, by the architecture's description.
        pub(crate) static ROOMS: &[(&Description, &Room)] = &[
            $($(#[$only])* (&ir::architecture::$room::DESCRIPTION, &$room::ROOM)),*
        ];
    };
}
ir::architectures!(rooms);

/// Lowers a checked program to the IR, and returns it with all errors and warnings; `None` if `main` is
/// missing or wrong. `name` is the program's name. If `marks_unset` is true, variables without an initial
/// value start with the value of a slot of [`Lowered::unset`] instead of zero; such a program is only for
/// analysis and must not run. `copies_arguments` is [`crate::Options::copy_arguments`].
pub(crate) fn lower(
    module: &Module,
    sources: &SourceMap,
    name: &str,
    marks_unset: bool,
    copies_arguments: bool,
) -> (Option<Lowered>, Vec<Diagnostic>) {
    let pipeline = match arch::recognise(module) {
        Ok(pipeline) => pipeline,
        Err(error) => return (None, vec![*error]),
    };
    let context = Context {
        module,
        sources,
        marks_unset,
        copies_arguments,
        main_span: module.var(pipeline.main).span,
    };
    let mut code = Code::new(Unit::new(context, name, pipeline.description));
    code.pipeline(&pipeline);
    let mut unit = code.into_unit();
    unit.install_bound();
    unit.check_direct_meter_reads();
    let (lowered, diagnostics) = unit.into_lowered(pipeline.main);
    (Some(lowered), diagnostics)
}

/// The result of lowering.
pub(crate) struct Lowered {
    /// The program; P4Runtime ids are still zero.
    pub program: ir::Program,
    /// The objects that the control plane sees.
    pub info: Info,
    /// The package instance.
    pub main: VarId,
    /// The slots of header stacks' next indexes.
    pub next_indexes: Vec<SlotId>,
    /// The slots that stand for unset values, if they were asked for.
    pub unset: BTreeSet<SlotId>,
}

/// The objects that the control plane sees, in the order in which they were met.
#[derive(Debug, Default)]
pub(crate) struct Info {
    /// Tables, with their positions in the program and their declarations.
    pub tables: Vec<TableInfo>,
    /// Actions of tables, with their ids and their declarations.
    pub actions: Vec<(ir::ActionId, hir::ActionId)>,
    /// Names of actions that are called directly, with their declarations.
    pub called: Vec<(String, hir::ActionId)>,
    /// Extern instances.
    pub externs: Vec<ExternInfo>,
    /// Value sets with the type of their members.
    pub value_sets: Vec<(ir::ValueSetId, VarId, Ty)>,
    /// Digests with the type of their data, and where they are.
    pub digests: Vec<(ir::DigestId, Ty, Span)>,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct TableInfo {
    /// In the program.
    pub table: ir::TableId,
    /// Its declaration.
    pub declaration: hir::TableId,
    /// Position in [`Info::externs`] of its direct counter.
    pub counter: Option<usize>,
    /// Position in [`Info::externs`] of its direct meter.
    pub meter: Option<usize>,
    /// Position in [`Info::externs`] of its action profile.
    pub profile: Option<usize>,
}

/// An extern instance that the control plane sees.
#[derive(Clone, Debug)]
pub(crate) struct ExternInfo {
    /// Control-plane name.
    pub name: String,
    /// Its kind.
    pub kind: ExternKind,
    /// The annotations of the declaration.
    pub annotations: Rc<[ast::Annotation]>,
    /// The place of its declaration.
    pub span: Span,
}

/// The kind of an extern instance.
#[derive(Clone, Debug)]
pub(crate) enum ExternKind {
    /// `register`, with the type of a cell and of its index.
    Register(ir::RegisterId, Ty, Option<Ty>),
    /// `counter`, with the type of its index.
    Counter(ir::CounterId, Option<Ty>),
    /// `direct_counter`
    DirectCounter(ir::CounterId),
    /// `meter`, with the type of its index.
    Meter(ir::MeterId, Option<Ty>),
    /// `direct_meter`
    DirectMeter(ir::MeterId),
    /// `action_profile` or `action_selector`
    Profile(ir::ActionProfileId),
}

/// Position of an [`Object`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectId(u32);

/// An instance of an extern that only one architecture has.
pub(crate) trait OwnObject: Any + Debug {
    /// Returns the slot that must be set to zero wherever the block that contains the instance is applied;
    /// `None` if the instance keeps no state.
    fn reset(&self) -> Option<SlotId> {
        None
    }
}

/// An instance.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    /// An extern that the control plane sees: position in [`Info::externs`].
    Extern(usize),
    /// `packet_in`
    PacketIn,
    /// `packet_out`
    PacketOut,
    /// `Checksum16`
    Checksum16,
    /// An extern of one architecture that the control plane does not see, as its room made it.
    Own(Rc<dyn OwnObject>),
    /// An instance for which an error was reported.
    Refused,
    /// A parser or control.
    Block(Rc<BlockInstance>),
}

/// An instance of a parser or control.
#[derive(Debug)]
pub(crate) struct BlockInstance {
    block: BlockId,
    /// Control-plane name; names inside are below it.
    path: String,
    /// Constructor parameters and instances inside.
    bindings: Vec<(VarId, Binding)>,
    /// True if it is applied at more than one place, so that its parameters need storage of their own.
    shared: bool,
}

/// What a variable stands for.
#[derive(Clone, Debug)]
enum Binding {
    Place(Place),
    Value(Value),
    /// The argument of an extern that was evaluated before the call.
    Lvalue(Lvalue),
}

impl Code<'_> {
    /// Lowers the whole program: the storage of the blocks' parameters, the global instances, and every
    /// parser and control of the pipeline.
    fn pipeline(&mut self, pipeline: &Pipeline) {
        let module = self.module;
        let known = room(pipeline.description)
            .externs
            .foreign_enum(&module.types);
        if let Some((def, members)) = known {
            self.report(errors::foreign_enum(def.span, &def.name, members));
            return;
        }
        let Some(places) = self.storage_of_parameters(pipeline) else {
            return;
        };
        let mut global = Body::of_block(self, ir::BlockId(0), body::Names::new());
        for id in &module.instances {
            if *id != pipeline.main
                && !matches!(module.var(*id).ty, Ty::BlockType(..) | Ty::Block(_))
            {
                let object = global.instance(*id, "");
                global.bind_name(*id, Binding::Value(Value::Object(object)));
            }
        }
        let names = global.scope.names;
        let user_metadata = Parameter::UserMetadata(ir::Pipeline::INGRESS);
        self.made.user_metadata = places.get(&user_metadata).cloned();
        for (instance, (id, _)) in pipeline.blocks.iter().zip(pipeline.description.blocks()) {
            Body::of_block(self, id, names.clone()).lower_block(instance, &places);
        }
    }
}

impl Body<'_, '_> {
    /// Lowers a parser or control of the pipeline, with its parameters bound to their storage.
    fn lower_block(&mut self, instance: &Instance, places: &BTreeMap<Parameter, (Place, Ty)>) {
        let module = self.module;
        let stage = instance.stage;
        let packet = self.new_object(match stage.is_parser() {
            true => Object::PacketIn,
            false => Object::PacketOut,
        });
        let mut bindings = Vec::new();
        let mut fresh = Vec::new();
        for parameter in stage.parameters {
            let Some((place, ty)) = places.get(parameter) else {
                bindings.push(Binding::Value(Value::Object(packet)));
                continue;
            };
            // The outputs of a deparser to other passes may still hold the inputs of this one.
            if matches!(parameter, Parameter::Bridged(_)) && stage.is_deparser() {
                fresh.push((place.clone(), self.default_value(ty)));
            }
            bindings.push(Binding::Place(place.clone()));
        }
        // A `@name` of the control itself does not count.
        let def = module.block(instance.block);
        let object = self.instantiate(instance.block, def.name.to_string(), &instance.args, false);
        let names = def.params.iter().copied().zip(bindings).collect();
        let id = self.block;
        if stage.is_parser() {
            if let Some(start) = self.inside(object, names, Vec::new()).main_parser(def) {
                self.program.blocks[id.index()] = ir::Block::Parser(start);
            }
            return;
        }
        let body = self.capture(|l| {
            for (place, value) in fresh {
                l.assign_place(&place, value);
            }
            l.inside(object, names, Vec::new()).block_statements(def);
        });
        *self.program.control_mut(id) = body;
    }
}

/// Returns the control-plane name of an object declared inside the object named `path`: `path`, a dot and the
/// object's name. A `@name` replaces the object's own name, or the whole if it begins with a dot.
fn control_plane_name(path: &str, name: &str, annotations: &[ast::Annotation]) -> String {
    let given = annotations
        .iter()
        .find(|a| a.name.as_str() == "name")
        .and_then(ast::Annotation::string);
    let local = given.as_deref().unwrap_or(name);
    match local.strip_prefix('.') {
        Some(global) => global.to_string(),
        None if path.is_empty() => local.to_string(),
        None => format!("{path}.{local}"),
    }
}
