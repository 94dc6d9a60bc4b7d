//! Bodies and what is known inside of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use ir::architecture::Stage;

use super::call::CopyOut;
use super::code::Code;
use super::place::Place;
use super::stmt::Exit;
use super::{Binding, ObjectId, parser};
use crate::hir::VarId;

/// The way in which `exit` ends an action that tables run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionExit {
    /// Out of the control at once.
    Direct,
    /// By way of the place where the table is applied, which may have something to copy back. Whether there was one.
    Told(bool),
}

/// A body being lowered: of a control, parser, function or action, in the place where it is called.
pub(crate) struct Body<'b, 'm> {
    code: &'b mut Code<'m>,
    /// The block of the pipeline that it belongs to.
    pub(super) block: ir::BlockId,
    pub(super) scope: Scope<'b>,
    /// The targets of jumps out of its statements, innermost last.
    pub(super) exits: Vec<Exit>,
    /// In a parser.
    pub(super) parser: parser::Position,
}

/// What names stand for.
pub(super) type Names = BTreeMap<VarId, Binding>;

/// What is known inside of a body, and gone after it.
#[derive(Default)]
pub(super) struct Scope<'b> {
    /// That of the caller.
    outer: Option<&'b Scope<'b>>,
    pub(super) names: Names,
    /// The instance whose body it is.
    pub(super) instance: Option<ObjectId>,
    /// The copies that `exit` must make first.
    pub(super) copies: Vec<CopyOut>,
    /// The way in which `exit` ends it, for an action that tables run.
    pub(super) action: Option<Cell<ActionExit>>,
}

impl<'b> Scope<'b> {
    /// Returns what a name stands for; `None` if it is a variable without storage yet.
    pub(super) fn binding(&self, var: VarId) -> Option<&Binding> {
        let scopes = std::iter::successors(Some(self), |s| s.outer);
        scopes.into_iter().find_map(|s| s.names.get(&var))
    }

    /// Returns the scopes that `exit` leaves, innermost first: up to the action that a table runs, or all.
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
    /// Begins the body of a block of the pipeline, in which nothing but `names` is known.
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

    /// Begins a body that is called or declared here. It belongs to `instance`, and sees `names` and what is known here.
    /// `copies` are to be made when it ends.
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

    /// Begins the body of a parser or control, which sees the instances and constructor parameters inside of it.
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

    /// Runs `f`, and returns the statements that `f` emits instead of adding them to the program.
    pub(super) fn capture(&mut self, f: impl FnOnce(&mut Self)) -> Vec<ir::Stmt> {
        self.out.push(Vec::new());
        f(self);
        self.out.pop().unwrap_or_default()
    }

    /// Returns the storage of a local variable or parameter of the instance around, and allocates it at
    /// the first request.
    pub(super) fn storage_of(&mut self, var: VarId) -> Place {
        let instance = self.scope.instance;
        self.storage_in(instance, var)
    }

    /// Lets a variable of this body stand for a place or value.
    pub(super) fn bind_name(&mut self, var: VarId, binding: Binding) {
        self.scope.names.insert(var, binding);
    }

    /// Returns the description of the block that is being lowered.
    pub(super) fn stage(&self) -> &'static Stage {
        self.program.architecture.description().stage(self.block)
    }
}
