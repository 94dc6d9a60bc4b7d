//! Bodies and what is known inside of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use ir::LabelId;
use ir::architecture::Stage;

use super::call::CopyOut;
use super::code::Code;
use super::place::Place;
use super::stmt::Exit;
use super::{Binding, ObjectId, parser};
use crate::hir::VarId;

/// How an `exit` statement leaves an action that tables run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionExit {
    /// It leaves the control at once.
    Direct,
    /// It ends the action alone, which tells the place where the table is applied to leave the control, since
    /// arguments may have to be copied back there. The flag is true once there was an `exit`.
    Told(bool),
}

/// An action that tables run, while it is lowered.
pub(super) struct TableAction {
    /// The label of its whole body.
    pub(super) label: LabelId,
    pub(super) exit: Cell<ActionExit>,
}

impl TableAction {
    /// Returns true if an `exit` in the action, or in one that it calls, breaks out of its body.
    pub(super) fn has_told(&self) -> bool {
        self.exit.get() == ActionExit::Told(true)
    }
}

/// A body being lowered: of a control, parser, function or action, in the place where it is called.
pub(crate) struct Body<'b, 'm> {
    code: &'b mut Code<'m>,
    /// The block of the pipeline of which it is part.
    pub(super) block: ir::BlockId,
    pub(super) scope: Scope<'b>,
    /// The targets of `return`, `break` and `continue` in it, innermost last.
    pub(super) exits: Vec<Exit>,
    /// The place in a parser, if it is part of one.
    pub(super) parser: parser::Position,
}

/// What names stand for.
pub(super) type Names = BTreeMap<VarId, Binding>;

/// What is known inside of a body, and gone after it.
#[derive(Default)]
pub(super) struct Scope<'b> {
    /// The scope of the caller.
    outer: Option<&'b Scope<'b>>,
    pub(super) names: Names,
    /// The instance of a parser or control whose body it is.
    pub(super) instance: Option<ObjectId>,
    /// The copies from parameters to arguments that `exit` must make before it leaves the body.
    pub(super) copies: Vec<CopyOut>,
    /// The action, if it is the body of one that tables run.
    pub(super) action: Option<TableAction>,
}

impl<'b> Scope<'b> {
    /// Returns what the variable `var` stands for, here or in a scope around; `None` if it has no storage
    /// yet.
    pub(super) fn binding(&self, var: VarId) -> Option<&Binding> {
        let scopes = std::iter::successors(Some(self), |s| s.outer);
        scopes.into_iter().find_map(|s| s.names.get(&var))
    }

    /// Returns the scopes that an `exit` statement leaves, innermost first: in an action that a table runs,
    /// those up to the action; else all.
    pub(super) fn left_by_exit(&self) -> impl Iterator<Item = &Scope<'b>> {
        std::iter::successors(Some(self), |s| s.outer.filter(|_| s.action.is_none()))
    }
}

impl<'m> Deref for Body<'_, 'm> {
    type Target = Code<'m>;

    fn deref(&self) -> &Code<'m> {
        self.code
    }
}

impl DerefMut for Body<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.code
    }
}

impl<'m> Body<'_, 'm> {
    /// Makes the state in which to lower the body of a block of the pipeline. Only `names` are bound in it.
    pub(super) fn of_block<'b>(
        code: &'b mut Code<'m>,
        block: ir::BlockId,
        names: Names,
    ) -> Body<'b, 'm> {
        Body {
            code,
            block,
            scope: Scope {
                names,
                ..Scope::default()
            },
            exits: Vec::new(),
            parser: parser::Position::default(),
        }
    }

    /// Makes the state in which to lower a body that is called or declared in this one. It belongs to
    /// `instance`, and sees `names` besides the names of this body. `copies` are those that an `exit` in it
    /// must make.
    pub(super) fn inner(
        &mut self,
        instance: Option<ObjectId>,
        names: Names,
        copies: Vec<CopyOut>,
    ) -> Body<'_, 'm> {
        Body {
            code: &mut *self.code,
            block: self.block,
            scope: Scope {
                outer: Some(&self.scope),
                names,
                instance,
                copies,
                action: None,
            },
            exits: Vec::new(),
            parser: self.parser.clone(),
        }
    }

    /// Makes the state in which to lower the body of a parser or control, the instance `object`. It sees the
    /// instances and constructor parameters of the object besides `names`. `copies` are those that an `exit`
    /// in it must make.
    pub(super) fn inside(
        &mut self,
        object: ObjectId,
        mut names: Names,
        copies: Vec<CopyOut>,
    ) -> Body<'_, 'm> {
        if let Some(instance) = self.block_instance(Some(object)) {
            names.extend(instance.bindings.iter().cloned());
        }
        self.inner(Some(object), names, copies)
    }

    /// Runs `f`, and returns the statements that `f` emits instead of adding them to this body.
    pub(super) fn capture(&mut self, f: impl FnOnce(&mut Self)) -> Vec<ir::Stmt> {
        self.out.push(Vec::new());
        f(self);
        self.out.pop().unwrap_or_default()
    }

    /// Returns the storage of a local variable or parameter of the current instance, and allocates it at the
    /// first request.
    pub(super) fn storage_of(&mut self, var: VarId) -> Place {
        let instance = self.scope.instance;
        self.storage_in(instance, var)
    }

    /// Makes a variable of this body stand for a place or value.
    pub(super) fn bind_name(&mut self, var: VarId, binding: Binding) {
        self.scope.names.insert(var, binding);
    }

    /// Returns the description of the block that is being lowered.
    pub(super) fn stage(&self) -> &'static Stage {
        self.program.architecture.description().stage(self.block)
    }
}
