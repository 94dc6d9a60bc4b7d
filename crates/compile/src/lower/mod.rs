//! Lowering: the checked program to IR.
//!
//! The blocks of the pipeline are instantiated and their bodies written out as statements over slots. Functions,
//! directly called actions, sub-parsers and sub-controls are inlined where they are called; structs, stacks and headers
//! become slots. Expressions with side effects are taken apart so that everything happens in the order the language
//! demands.
//!
//! Field writes are emitted here whether the header is valid or not; the pass [`crate::validity`] guards them after.

mod assign;
mod bound;
pub(crate) mod build;
mod call;
mod control;
mod entries;
mod expr;
mod externs;
mod hash;
mod instances;
mod metered;
mod parser;
mod place;
mod sequence;
mod stateful;
mod stmt;
mod storage;
mod value;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::rc::Rc;

pub(crate) use externs::{Call, MethodCall};
pub(crate) use instances::{Made, NewInstance};
pub(crate) use place::Value;

use ir::architecture::{Description, Parameter, Stage};
use ir::{Architecture, Expr, HeaderId, LabelId, Loc, SlotId, StmtKind};
use syntax::ast;
use syntax::source::{SourceMap, Span};
use syntax::{Diagnostic, Sink};

use crate::arch::{self, Instance, Pipeline};
use crate::errors;
use crate::externs::Externs;
use crate::hir::{self, Module, VarId};
use crate::types::{BlockId, StructDef, Ty};
use place::{Lvalue, Place};

/// The part of an architecture's room that the compiler reads.
pub(crate) struct Room {
    /// Its externs.
    pub externs: &'static Externs,
    /// The names under which its include file is built in; none if it is not.
    pub include_files: &'static [&'static str],
    /// The text of the include file.
    pub text: &'static str,
}

macro_rules! rooms {
    ($($(#[$only:meta])* $room:ident),*) => {
        $($(#[$only])* mod $room;)*

        /// All rooms, by the architecture.
        pub(crate) static ROOMS: &[(&Description, &Room)] = &[
            $($(#[$only])* (&ir::architecture::$room::DESCRIPTION, &$room::ROOM)),*
        ];
    };
}
ir::architectures!(rooms);

/// Returns the room of an architecture.
pub(crate) fn room(description: &Description) -> &'static Room {
    let found = ROOMS
        .iter()
        .find(|(known, _)| known.name == description.name);
    found.expect("each architecture has a room").1
}

/// Statements, slots and states that lowering makes at most.
const MAX_WORK: u32 = 1 << 18;

/// Lowers a checked program to the IR. `name` is the program's name. `marks_unset`: a variable without a
/// value starts with the value of a slot of [`Lowered::unset`] instead of zero; such a program is only for
/// analysis and must not run. `copies_arguments`: see [`crate::Options`].
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
    let mut lowerer = Lowerer::new(module, sources, name, pipeline.description);
    lowerer.unset = marks_unset.then(BTreeMap::new);
    lowerer.copies_arguments = copies_arguments;
    lowerer.pipeline(&pipeline);
    lowerer.install_bound();
    lowerer.check_direct_meter_reads();
    let Lowerer {
        program,
        info,
        diagnostics,
        next_indexes,
        unset,
        ..
    } = lowerer;
    (
        Some(Lowered {
            program,
            info,
            main: pipeline.main,
            next_indexes,
            unset: unset.into_iter().flat_map(BTreeMap::into_values).collect(),
        }),
        diagnostics.into_vec(),
    )
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
    /// The slots that stand for no value, if such were asked for.
    pub unset: BTreeSet<SlotId>,
}

/// The objects that the control plane sees, in the order in which they were met.
#[derive(Debug, Default)]
pub(crate) struct Info {
    /// Tables: position in the program and declaration.
    pub tables: Vec<TableInfo>,
    /// Actions, likewise.
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
    /// The declaration.
    pub declaration: hir::TableId,
    /// Positions in [`Info::externs`] of the direct counter, direct meter and action profile.
    pub counter: Option<usize>,
    /// Likewise.
    pub meter: Option<usize>,
    /// Likewise.
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
    /// Returns the slot that is zero again wherever the block that contains the instance is applied.
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
    /// Its error has been reported.
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
    /// True if it is applied at more than one place, so that its parameters cannot stand for one place each.
    shared: bool,
}

/// The place or the value of a variable.
#[derive(Clone, Debug)]
enum Binding {
    Place(Place),
    Value(Value),
    /// An argument that was evaluated before: only calls of externs have such.
    Lvalue(Lvalue),
}

/// The targets of `return`, `break` and `continue`.
#[derive(Debug)]
enum Exit {
    /// Out of a function, action or control.
    Return {
        label: LabelId,
        used: bool,
        result: Option<Place>,
    },
    /// Out of a loop.
    Break { label: LabelId },
    /// To the next round of a loop.
    Continue { label: LabelId, used: bool },
}

/// The way in which `exit` ends an action that tables run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActionExit {
    /// Out of the control at once.
    Direct,
    /// By way of the place where the table is applied, which may have something to copy back. Whether there was one.
    Told(bool),
}

pub(crate) struct Lowerer<'m> {
    module: &'m Module,
    sources: &'m SourceMap,
    program: ir::Program,
    info: Info,
    diagnostics: Sink,
    /// The bindings of variables now.
    env: BTreeMap<VarId, Binding>,
    objects: Vec<Object>,
    /// Instances of `C.apply()`, by the instance around and the place of the call.
    anonymous: BTreeMap<(Option<ObjectId>, Span), ObjectId>,
    /// Storage of locals and parameters, by the instance around.
    storage: BTreeMap<(Option<ObjectId>, VarId), Place>,
    tables: BTreeMap<(ObjectId, hir::TableId), ir::TableId>,
    /// The actions of tables, with the block for which each was lowered.
    actions: BTreeMap<(Option<ObjectId>, hir::ActionId), (ir::ActionId, ir::BlockId)>,
    /// The arguments that tables give to their actions, by action.
    bound: BTreeMap<ir::ActionId, Vec<bound::Bound>>,
    /// True if every argument is copied, even where it can stand for its parameter.
    copies_arguments: bool,
    /// Number of arguments evaluated before the extern that they are for was called.
    evaluated_arguments: u32,
    value_sets: BTreeMap<(Option<ObjectId>, VarId), ir::ValueSetId>,
    field_lists: BTreeMap<FieldListKey, ir::FieldListId>,
    /// The other members of a header's union.
    siblings: BTreeMap<HeaderId, Vec<HeaderId>>,
    /// The slots of header stacks' next indexes.
    next_indexes: Vec<SlotId>,
    /// For each width, the slots that stand for no value, if they are marked.
    unset: Option<BTreeMap<u32, SlotId>>,
    /// Headers that are not whole bytes.
    padded: BTreeSet<HeaderId>,
    /// The slots of fields of headers: what is written to them is lost while the header is invalid.
    header_fields: BTreeSet<SlotId>,
    /// The headers around varbits that are in none.
    loose: BTreeMap<SlotId, HeaderId>,
    /// The instance whose body is being lowered.
    current: Option<ObjectId>,
    /// The block that is being lowered.
    block: ir::BlockId,
    /// True if an action that tables run is being lowered.
    in_action: bool,
    /// The way in which `exit` ends the action being lowered.
    action_exit: ActionExit,
    /// Actions that tell their caller to exit.
    exiting: BTreeSet<ir::ActionId>,
    /// Set to 1 by an action whose caller is to exit.
    exit_slot: Option<SlotId>,
    out: Vec<Vec<ir::Stmt>>,
    exits: Vec<Exit>,
    /// The copies that `exit` must make first, innermost last.
    copy_outs: Vec<Vec<(Lvalue, Place, Ty)>>,
    loc: Loc,
    files: BTreeMap<std::sync::Arc<str>, u32>,
    labels: u32,
    /// Reads of direct meters, to be checked when all tables are known.
    direct_meter_reads: Vec<(ir::MeterId, Span)>,
    /// Statements, slots and instances made so far; beyond [`MAX_WORK`] nothing more is.
    work: u32,
    parser: parser::Graph,
    user_metadata: Option<(Place, Ty)>,
    /// The place of `main`, for what has no better place.
    main_span: Span,
}

/// The key of a field list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FieldListKey {
    /// `@field_list(n)` on fields of the user's metadata.
    Annotated(u32),
    /// Given with the call.
    Slots(Vec<SlotId>),
}

impl<'m> Lowerer<'m> {
    fn new(
        module: &'m Module,
        sources: &'m SourceMap,
        name: &str,
        description: &'static Description,
    ) -> Lowerer<'m> {
        Lowerer {
            module,
            sources,
            program: ir::Program {
                // Those of the architecture's metadata come with its variables.
                slots: Vec::new(),
                errors: module.types.errors.iter().map(|e| e.to_string()).collect(),
                ..ir::Program::empty(name, description)
            },
            info: Info::default(),
            diagnostics: Sink::default(),
            env: BTreeMap::new(),
            objects: Vec::new(),
            anonymous: BTreeMap::new(),
            storage: BTreeMap::new(),
            tables: BTreeMap::new(),
            actions: BTreeMap::new(),
            bound: BTreeMap::new(),
            copies_arguments: false,
            evaluated_arguments: 0,
            value_sets: BTreeMap::new(),
            field_lists: BTreeMap::new(),
            siblings: BTreeMap::new(),
            next_indexes: Vec::new(),
            unset: None,
            padded: BTreeSet::new(),
            header_fields: BTreeSet::new(),
            loose: BTreeMap::new(),
            current: None,
            block: ir::BlockId(0),
            in_action: false,
            action_exit: ActionExit::Direct,
            exiting: BTreeSet::new(),
            exit_slot: None,
            out: vec![Vec::new()],
            exits: Vec::new(),
            copy_outs: Vec::new(),
            loc: Loc::default(),
            files: BTreeMap::new(),
            labels: 0,
            direct_meter_reads: Vec::new(),
            work: 0,
            parser: parser::Graph::default(),
            user_metadata: None,
            main_span: Span::default(),
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        // A body that is inlined twice says everything twice.
        self.diagnostics.push_new(diagnostic);
    }

    /// Adds `amount` to the size of the lowered program, which inlining can multiply without bound. Reports
    /// once that the size exceeds `MAX_WORK`.
    fn spend(&mut self, amount: u32) {
        if self.work <= MAX_WORK && self.work + amount > MAX_WORK {
            self.report(errors::too_large(
                self.main_span,
                "functions and controls are called too often",
            ));
        }
        self.work = self.work.saturating_add(amount);
    }

    fn exhausted(&self) -> bool {
        self.work > MAX_WORK
    }

    fn emit(&mut self, kind: StmtKind) {
        self.spend(1);
        let loc = self.loc;
        if let Some(out) = self.out.last_mut() {
            out.push(ir::Stmt { kind, loc });
        }
    }

    /// Emits a branch on `cond`; emits only one side, without a branch, if `cond` is constant.
    fn emit_if(&mut self, cond: Expr, then: Vec<ir::Stmt>, otherwise: Vec<ir::Stmt>) {
        match build::known(&cond) {
            Some(true) => self.splice(then),
            Some(false) => self.splice(otherwise),
            None if then.is_empty() && otherwise.is_empty() => {}
            None if then.is_empty() => {
                self.emit(StmtKind::If {
                    cond: build::not(cond),
                    then: otherwise,
                    otherwise: then,
                });
            }
            None => self.emit(StmtKind::If {
                cond,
                then,
                otherwise,
            }),
        }
    }

    fn splice(&mut self, stmts: Vec<ir::Stmt>) {
        if let Some(out) = self.out.last_mut() {
            out.extend(stmts);
        }
    }

    /// Runs `f`, and returns the statements that `f` emits instead of adding them to the program.
    fn capture(&mut self, f: impl FnOnce(&mut Self)) -> Vec<ir::Stmt> {
        self.out.push(Vec::new());
        f(self);
        self.out.pop().unwrap_or_default()
    }

    fn new_label(&mut self) -> LabelId {
        self.labels += 1;
        LabelId(self.labels - 1)
    }

    /// Sets the place in the source that all statements emitted from now on get.
    fn at(&mut self, span: Span) {
        self.loc = self.locate(span);
    }

    fn locate(&mut self, span: Span) -> Loc {
        let at = self.sources.location(span);
        let next = self.program.files.len() as u32;
        let file = *self.files.entry(at.file.clone()).or_insert(next);
        if file == next {
            self.program.files.push(at.file.to_string());
        }
        Loc {
            file,
            line: at.line,
        }
    }

    fn new_object(&mut self, object: Object) -> ObjectId {
        self.objects.push(object);
        ObjectId(self.objects.len() as u32 - 1)
    }

    fn object(&self, id: ObjectId) -> Object {
        self.objects[id.0 as usize].clone()
    }

    /// Returns the storage of a local variable or parameter of the current instance, and allocates it at
    /// the first request.
    fn storage_of(&mut self, var: VarId) -> Place {
        let key = (self.current, var);
        if let Some(place) = self.storage.get(&key) {
            return place.clone();
        }
        let def = self.module.var(var);
        let prefix = match self.current.map(|o| self.object(o)) {
            Some(Object::Block(instance)) => format!("{}.", instance.path),
            _ => String::new(),
        };
        let place = self.alloc(&def.ty, &format!("{prefix}{}", def.name), def.span);
        self.storage.insert(key, place.clone());
        place
    }

    /// Lowers the whole program: the storage of the blocks' parameters, the global instances, and every
    /// parser and control of the pipeline.
    fn pipeline(&mut self, pipeline: &Pipeline) {
        let module = self.module;
        self.main_span = module.var(pipeline.main).span;
        let known = crate::externs::of(pipeline.description).foreign_enum(&module.types);
        if let Some((def, members)) = known {
            self.report(errors::foreign_enum(def.span, &def.name, members));
            return;
        }
        let Some(places) = self.storage_of_parameters(pipeline) else {
            return;
        };
        for id in &module.instances {
            if *id != pipeline.main
                && !matches!(module.var(*id).ty, Ty::BlockType(..) | Ty::Block(_))
            {
                let object = self.instance(*id, "");
                self.env.insert(*id, Binding::Value(Value::Object(object)));
            }
        }
        let user_metadata = Parameter::UserMetadata(ir::Pipeline::INGRESS);
        self.user_metadata = places.get(&user_metadata).cloned();
        for (instance, (id, _)) in pipeline.blocks.iter().zip(pipeline.description.blocks()) {
            self.lower_block(id, instance, &places);
        }
        self.program.states = self.take_states();
    }

    /// Allocates the storage of the blocks' parameters, including those with the architecture's metadata.
    /// Returns `None` after an error.
    fn storage_of_parameters(
        &mut self,
        pipeline: &Pipeline,
    ) -> Option<BTreeMap<Parameter, (Place, Ty)>> {
        let module = self.module;
        let description = pipeline.description;
        let mut places = BTreeMap::new();
        for (parameter, block, position) in description.storage {
            let instance = pipeline.blocks.get(block.index())?;
            let var = module.var(*module.block(instance.block).params.get(*position)?);
            let name = match parameter {
                Parameter::Intrinsic(path) if !path.is_empty() => (*path).to_string(),
                Parameter::Headers(pipeline) | Parameter::UserMetadata(pipeline)
                    if description.deparses_between() =>
                {
                    format!("{}.{}", description.pipeline(*pipeline).name, var.name)
                }
                _ => var.name.to_string(),
            };
            let place = self.alloc(&var.ty, &name, var.span);
            places.insert(*parameter, (place, var.ty.clone()));
        }
        let found = Architecture::from_names(description, |name| {
            metadata_slot(&places, module, name).ok_or(name)
        });
        match found {
            Ok(architecture) => {
                for (name, slot, width) in architecture.fields() {
                    let found = self.program.slots[slot.index()].width;
                    if found != width {
                        let span = metadata_span(&places, module, name).unwrap_or(self.main_span);
                        let files = crate::architecture_files();
                        self.report(errors::metadata_width(span, name, width, found, &files));
                    }
                }
                self.program.architecture = architecture;
            }
            Err(name) => {
                let wanted = format!("the metadata of {}, with `{name}`", description.name);
                let intrinsic = |p: &&Parameter| matches!(p, Parameter::Intrinsic(_));
                let given = places.keys().find(intrinsic).and_then(|p| places.get(p));
                let found = given.map(|(_, ty)| module.types.show(ty));
                let found = found.unwrap_or_default();
                self.report(errors::type_mismatch(self.main_span, &wanted, &found));
                return None;
            }
        }
        for bridged in description.bridged() {
            let mut slots = Vec::new();
            if let Some((place, _)) = places.get(&Parameter::Bridged(bridged)) {
                place.for_each_slot(&self.program.headers, &mut |slot| slots.push(slot));
            }
            self.program.field_lists.push(ir::FieldList { slots });
        }
        Some(places)
    }

    /// Returns the description of the block that is being lowered.
    fn stage(&self) -> &'static Stage {
        self.program.architecture.description().stage(self.block)
    }

    /// Lowers a parser or control of the pipeline, with its parameters bound to their storage.
    fn lower_block(
        &mut self,
        id: ir::BlockId,
        instance: &Instance,
        places: &BTreeMap<Parameter, (Place, Ty)>,
    ) {
        let module = self.module;
        let stage = instance.stage;
        self.block = id;
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
        let path = module.block(instance.block).name.to_string();
        let object = self.instantiate(instance.block, path, &instance.args, false);
        if stage.is_parser() {
            if let Some(start) = self.main_parser(object, bindings) {
                self.program.blocks[id.index()] = ir::Block::Parser(start);
            }
            return;
        }
        let body = self.capture(|l| {
            for (place, value) in fresh {
                l.assign_place(&place, value);
            }
            l.control_body(object, bindings);
        });
        *self.program.control_mut(id) = body;
    }
}

/// Returns the control-plane name of an object declared inside of `path`: `path`, a dot and the object's
/// name. A `@name` replaces the object's name, or the whole if the `@name` begins with a dot.
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

/// Returns the slot of a field of the architecture's metadata; `None` if there is no such field. `name` is
/// the field's name, with the name of its struct and a dot before it if there are several structs.
fn metadata_slot(
    places: &BTreeMap<Parameter, (Place, Ty)>,
    module: &Module,
    name: &str,
) -> Option<SlotId> {
    let (place, _, position) = metadata_field(places, module, name)?;
    match place.field(position)? {
        Place::Scalar(slot) => Some(*slot),
        _ => None,
    }
}

/// Returns the place in the source where a field of the architecture's metadata is declared; `None` if
/// there is no such field.
fn metadata_span(
    places: &BTreeMap<Parameter, (Place, Ty)>,
    module: &Module,
    name: &str,
) -> Option<Span> {
    let (_, def, position) = metadata_field(places, module, name)?;
    Some(def.fields.get(position)?.span)
}

/// Returns, for a field of the architecture's metadata, the storage and the definition of its struct and
/// the field's position in the struct; `None` if there is no such field.
fn metadata_field<'a>(
    places: &'a BTreeMap<Parameter, (Place, Ty)>,
    module: &'a Module,
    name: &str,
) -> Option<(&'a Place, &'a StructDef, usize)> {
    let (path, field) = name.split_once('.').unwrap_or(("", name));
    let of_path = |p: &&Parameter| matches!(p, Parameter::Intrinsic(known) if *known == path);
    let (place, ty) = places.get(places.keys().find(of_path)?)?;
    let Ty::Struct(id) = ty else { return None };
    let def = module.types.structure(*id);
    Some((place, def, def.field(field)?))
}
