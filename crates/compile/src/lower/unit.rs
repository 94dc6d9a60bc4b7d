//! The program as far as it is lowered, and the input of lowering.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use ir::architecture::Description;
use ir::{Bits, Expr, HeaderId, LabelId, Loc, SlotId};
use syntax::source::{SourceMap, Span};
use syntax::{Diagnostic, Sink};

use super::bound::Bound;
use super::place::Place;
use super::room::{Externs, room};
use super::{BlockInstance, Info, Lowered, Object, ObjectId};
use crate::errors;
use crate::hir::{self, Module, VarId};
use crate::types::Ty;

/// The number of statements, slots and states that lowering makes at most.
const MAX_WORK: u32 = 1 << 18;

/// The input of lowering, which nothing changes: the checked program and the options.
pub(crate) struct Context<'m> {
    pub(super) module: &'m Module,
    pub(super) sources: &'m SourceMap,
    /// True if a variable without a value starts with the value of a slot of [`Lowered::unset`].
    pub(super) marks_unset: bool,
    /// True if every argument is copied, even where it can stand for its parameter.
    pub(super) copies_arguments: bool,
    /// The place of `main`, for what has no better place.
    pub(super) main_span: Span,
}

/// The program as far as it is lowered. It only grows, and knows nothing of the body that is being lowered.
pub(crate) struct Unit<'m> {
    context: Context<'m>,
    pub(super) program: ir::Program,
    pub(super) info: Info,
    diagnostics: Sink,
    objects: Vec<Object>,
    pub(super) made: Declarations,
    pub(super) headers: Headers,
    /// For each width, the slot that stands for an unset value, if such are marked.
    pub(super) unset: BTreeMap<u32, SlotId>,
    files: BTreeMap<Arc<str>, u32>,
    labels: u32,
    /// The number of statements, slots and instances made so far; beyond [`MAX_WORK`] nothing more is made.
    work: u32,
}

/// What was made of the declarations of the checked program, each at its first use.
#[derive(Default)]
pub(super) struct Declarations {
    /// Instances of `C.apply()`, by the instance that contains the call and the place of the call.
    pub(super) anonymous: BTreeMap<(Option<ObjectId>, Span), ObjectId>,
    /// Storage of local variables and parameters, by the instance to which they belong.
    pub(super) storage: BTreeMap<(Option<ObjectId>, VarId), Place>,
    pub(super) tables: BTreeMap<(ObjectId, hir::TableId), ir::TableId>,
    /// The actions of tables, with the block for which each was lowered.
    pub(super) actions: BTreeMap<(Option<ObjectId>, hir::ActionId), (ir::ActionId, ir::BlockId)>,
    /// The arguments that tables give to their actions, by action.
    pub(super) bound: BTreeMap<ir::ActionId, Vec<Bound>>,
    /// Actions that set `exit_slot` when the place where their table is applied must exit.
    pub(super) exiting: BTreeSet<ir::ActionId>,
    /// The slot that such an action sets to 1.
    pub(super) exit_slot: Option<SlotId>,
    pub(super) value_sets: BTreeMap<(Option<ObjectId>, VarId), ir::ValueSetId>,
    pub(super) field_lists: BTreeMap<FieldListKey, ir::FieldListId>,
    pub(super) user_metadata: Option<(Place, Ty)>,
    /// Reads of direct meters, to be checked when all tables are known.
    pub(super) direct_meter_reads: Vec<(ir::MeterId, Span)>,
    /// Number of arguments of externs that were evaluated before the call, in the order in which they are
    /// written.
    pub(super) evaluated_arguments: u32,
    /// Sub-parsers applied so far.
    pub(super) sub_parsers: u32,
}

/// What is known of headers beyond what the IR says.
#[derive(Default)]
pub(super) struct Headers {
    /// The other members of a header's union.
    pub(super) siblings: BTreeMap<HeaderId, Vec<HeaderId>>,
    /// The slots of header stacks' next indexes.
    pub(super) next_indexes: Vec<SlotId>,
    /// Headers whose width is no multiple of 8 bits.
    pub(super) padded: BTreeSet<HeaderId>,
    /// The slots of fields of headers: what is written to them is lost while the header is invalid.
    pub(super) fields: BTreeSet<SlotId>,
    /// For each varbit outside of a header, by its slot, the header that was made for it.
    pub(super) loose: BTreeMap<SlotId, HeaderId>,
}

/// What a field list is made from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FieldListKey {
    /// The fields of the user's metadata with `@field_list(n)`.
    Annotated(u32),
    /// The slots given with the call.
    Slots(Vec<SlotId>),
}

impl<'m> Deref for Unit<'m> {
    type Target = Context<'m>;

    fn deref(&self) -> &Context<'m> {
        &self.context
    }
}

impl<'m> Unit<'m> {
    pub(super) fn new(
        context: Context<'m>,
        name: &str,
        description: &'static Description,
    ) -> Unit<'m> {
        let errors = context.module.types.errors.iter();
        Unit {
            program: ir::Program {
                // Those of the architecture's metadata come with its variables.
                slots: Vec::new(),
                errors: errors.map(|e| e.to_string()).collect(),
                ..ir::Program::empty(name, description)
            },
            context,
            info: Info::default(),
            diagnostics: Sink::default(),
            objects: Vec::new(),
            made: Declarations::default(),
            headers: Headers::default(),
            unset: BTreeMap::new(),
            files: BTreeMap::new(),
            labels: 0,
            work: 0,
        }
    }

    /// Ends lowering. Returns its result, and the diagnostics.
    pub(super) fn into_lowered(self, main: VarId) -> (Lowered, Vec<Diagnostic>) {
        let lowered = Lowered {
            program: self.program,
            info: self.info,
            main,
            next_indexes: self.headers.next_indexes,
            unset: self.unset.into_values().collect(),
        };
        (lowered, self.diagnostics.into_vec())
    }

    /// Returns the externs of the program's architecture.
    pub(super) fn externs(&self) -> &'static Externs {
        room(self.program.architecture.description()).externs
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        // A body that is inlined twice says everything twice.
        self.diagnostics.push_new(diagnostic);
    }

    /// Returns the bits of a constant. Reports another expression, where `what` names it in the message, and returns
    /// `None`.
    pub(super) fn constant(&mut self, value: Expr, span: Span, what: &str) -> Option<Bits> {
        match value {
            Expr::Const(bits) => Some(bits),
            _ => {
                self.report(errors::not_constant(span, what));
                None
            }
        }
    }

    /// Adds `amount` to the size of the lowered program, which inlining can multiply without bound. Reports
    /// an error once, when the size exceeds `MAX_WORK`.
    pub(super) fn spend(&mut self, amount: u32) {
        if self.work <= MAX_WORK && self.work + amount > MAX_WORK {
            let what = "functions and controls are called too often";
            self.report(errors::too_large(self.main_span, what));
        }
        self.work = self.work.saturating_add(amount);
    }

    pub(super) fn exhausted(&self) -> bool {
        self.work > MAX_WORK
    }

    pub(super) fn new_label(&mut self) -> LabelId {
        self.labels += 1;
        LabelId(self.labels - 1)
    }

    pub(super) fn locate(&mut self, span: Span) -> Loc {
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

    pub(super) fn new_object(&mut self, object: Object) -> ObjectId {
        self.objects.push(object);
        ObjectId(self.objects.len() as u32 - 1)
    }

    pub(super) fn object(&self, id: ObjectId) -> Object {
        self.objects[id.0 as usize].clone()
    }

    /// Replaces the object `id`, which was made before the instances inside of it, by its final form.
    pub(super) fn complete_object(&mut self, id: ObjectId, object: Object) {
        self.objects[id.0 as usize] = object;
    }

    /// Returns the instance `id` if it is one of a parser or control; `None` for any other instance, and for
    /// no id.
    pub(super) fn block_instance(&self, id: Option<ObjectId>) -> Option<&Rc<BlockInstance>> {
        match &self.objects[id?.0 as usize] {
            Object::Block(instance) => Some(instance),
            _ => None,
        }
    }

    /// Returns the storage of a local variable or parameter of the instance `owner`, and allocates it at
    /// the first request.
    pub(super) fn storage_in(&mut self, owner: Option<ObjectId>, var: VarId) -> Place {
        if let Some(place) = self.made.storage.get(&(owner, var)) {
            return place.clone();
        }
        let def = self.module.var(var);
        let name = match self.block_instance(owner) {
            Some(instance) => format!("{}.{}", instance.path, def.name),
            None => def.name.to_string(),
        };
        let place = self.alloc(&def.ty, &name, def.span);
        self.made.storage.insert((owner, var), place.clone());
        place
    }
}
