//! Recognises the architecture: finds `main` and the blocks of its package, which may be in packages within it.
//!
//! [`ir::architecture`] declares the packages and blocks.

use std::sync::Arc;

use ir::architecture::{Description, Stage};
use syntax::diagnostics::Diagnostic;
use syntax::source::{FileId, Span};

use crate::errors;
use crate::hir::{Arg, CallTarget, Expr, ExprKind, Module, VarId, VarKind};
use crate::types::{BlockId, Ty};

/// One block of the pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// Its place in the pipeline, and the parameters that the architecture gives it there.
    pub stage: &'static Stage,
    /// The parser or control.
    pub block: BlockId,
    /// The constructor's arguments.
    pub args: Arc<[Arg]>,
}

/// The blocks of a program.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    /// The package instance, which has the annotations of the program.
    pub main: VarId,
    /// The architecture.
    pub description: &'static Description,
    /// The blocks, one for each stage of the description, in the description's order.
    pub blocks: Vec<Instance>,
}

/// Finds the parsers and controls that are arguments of the package instance `main`, at any depth of
/// packages. `Err` holds an error if `main` is not a complete package of a known architecture, or a warning
/// if the program has no `main`.
pub(crate) fn recognise(module: &Module) -> Result<Pipeline, Box<Diagnostic>> {
    let main = module
        .instances
        .iter()
        .copied()
        .find(|id| &*module.var(*id).name == "main");
    let Some(main) = main else {
        return Err(Box::new(errors::no_main(
            Span::new(FileId(0), 0, 0),
            ir::architecture::ALL[0].package,
        )));
    };
    let var = module.var(main);
    let wrong = |found: &str| {
        let packages = crate::architectures(|d| format!("`{}`", d.package), "or");
        let names = crate::architecture_names();
        Box::new(errors::wrong_package(var.span, found, &packages, &names))
    };
    let (VarKind::Instance(args), Ty::BlockType(id, _)) = (&var.kind, &var.ty) else {
        return Err(wrong(&module.types.show(&var.ty)));
    };
    let package = module.types.block_types[id.index()].sig.name.clone();
    let mut found = Vec::new();
    blocks(module, args, &mut found);
    let mut known = ir::architecture::ALL.iter().copied();
    let description = known
        .find(|d| d.package == &*package && d.stages.len() == found.len())
        .ok_or_else(|| wrong(&package))?;
    let stages = description.stages.iter().zip(found);
    for (stage, (block, _)) in stages.clone() {
        let def = module.block(block);
        if def.is_parser != stage.is_parser() || def.params.len() != stage.parameters.len() {
            let (name, span) = (description.name, var.span);
            let error = errors::foreign_block(span, &package, name, stage.name, def.span);
            return Err(Box::new(error));
        }
    }
    let blocks = stages.map(|(stage, (block, args))| Instance { stage, block, args });
    Ok(Pipeline {
        main,
        description,
        blocks: blocks.collect(),
    })
}

/// Appends to `out` each parser and control among the arguments `args` of a package, together with the
/// arguments of its own constructor. Packages among `args` are searched too. An argument is either a
/// constructor call, `Name()`, or the name of an instance.
fn blocks(module: &Module, args: &[Arg], out: &mut Vec<(BlockId, Arc<[Arg]>)>) {
    for expr in args.iter().filter_map(Arg::expr) {
        let args = constructed(module, expr);
        match (&expr.ty, args) {
            (Ty::Block(block), Some(args)) => out.push((*block, args)),
            (Ty::BlockType(..), Some(args)) => blocks(module, &args, out),
            _ => {}
        }
    }
}

/// Returns the constructor arguments of the instance that `expr` creates, as in `Name(1)`, or names; `None`
/// if `expr` is no instance.
fn constructed(module: &Module, expr: &Expr) -> Option<Arc<[Arg]>> {
    match &expr.kind {
        ExprKind::Call(call) => match &call.target {
            CallTarget::Construct => Some(call.args.to_vec().into()),
            _ => None,
        },
        ExprKind::Var(id) => match &module.var(*id).kind {
            VarKind::Instance(args) => Some(args.to_vec().into()),
            _ => None,
        },
        _ => None,
    }
}
