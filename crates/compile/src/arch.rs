//! Recognises the architecture: finds `main` and the six blocks of a `V1Switch`.

use std::sync::Arc;

use syntax::diagnostics::Diagnostic;
use syntax::source::{FileId, Span};

use crate::errors;
use crate::hir::{Arg, CallTarget, Expr, ExprKind, Module, VarId, VarKind};
use crate::types::{BlockId, Ty};

/// One block of the pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// The parser or control.
    pub block: BlockId,
    /// The constructor's arguments.
    pub args: Arc<[Arg]>,
}

/// The blocks of a v1model program.
#[derive(Clone, Debug)]
pub(crate) struct V1Switch {
    /// The package instance, which has the annotations of the program.
    pub main: VarId,
    /// Parser, checksum check, ingress, egress, checksum update, deparser.
    pub stages: [Stage; 6],
}

/// Finds the blocks. What is found instead is an error, or the warning that there is no `main`.
pub(crate) fn recognise(module: &Module) -> Result<V1Switch, Box<Diagnostic>> {
    let main = module
        .instances
        .iter()
        .copied()
        .find(|id| &*module.var(*id).name == "main");
    let Some(main) = main else {
        return Err(Box::new(errors::no_main(Span::new(FileId(0), 0, 0))));
    };
    let var = module.var(main);
    let VarKind::Instance(args) = &var.kind else {
        return Err(Box::new(errors::wrong_package(
            var.span,
            &module.types.show(&var.ty),
        )));
    };
    let package = match &var.ty {
        Ty::BlockType(id, _) => module.types.block_types[id.index()].sig.name.clone(),
        ty => {
            return Err(Box::new(errors::wrong_package(
                var.span,
                &module.types.show(ty),
            )));
        }
    };
    let stages: Vec<Stage> = args
        .iter()
        .filter_map(|a| stage(module, a.expr()?))
        .collect();
    match stages.try_into() {
        Ok(stages) if &*package == "V1Switch" => Ok(V1Switch { main, stages }),
        _ => Err(Box::new(errors::wrong_package(var.span, &package))),
    }
}

/// The block that an argument of the package is: `Name()`, or an instance declared before.
fn stage(module: &Module, expr: &Expr) -> Option<Stage> {
    let args: Arc<[Arg]> = match &expr.kind {
        ExprKind::Call(call) => match &call.target {
            CallTarget::Construct => call.args.clone().into(),
            _ => return None,
        },
        ExprKind::Var(id) => match &module.var(*id).kind {
            VarKind::Instance(args) => args.to_vec().into(),
            _ => return None,
        },
        _ => return None,
    };
    match expr.ty {
        Ty::Block(block) => Some(Stage { block, args }),
        _ => None,
    }
}
