//! Makes executable memory of a program's functions.
//!
//! Functions are generated and compiled independently of each other, in threads, and then put into one module. A function that becomes
//! too large is left out. Large ones are compiled with less care, so that no program takes long. Whatever goes wrong in the code
//! generator is an error, never a panic.

use crate::code::{EntryPoint, Input, generate};
use crate::executor::{CompileStats, JitError};
use crate::paths;
use crate::shims::Shim;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, FuncRef, Function, Inst};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetFrontendConfig, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleReloc, default_libcall_names};
use ir::{Layout, Program};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A function of more instructions is compiled fast rather than well.
const LARGE_FUNCTION: usize = 40_000;

/// Functions in executable memory, by [`EntryPoint`].
pub(crate) struct NativeCode {
    /// Owns the memory.
    pub module: JITModule,
    /// What was made.
    pub stats: CompileStats,
    /// Addresses; none where the program has no use for the function, or it would be too large.
    pub functions: [Option<*const u8>; EntryPoint::ALL.len()],
}

/// Compiles all functions of a verified program.
pub(crate) fn compile_halves(program: &Program) -> Result<NativeCode, JitError> {
    let result = catch_unwind(AssertUnwindSafe(|| compile_unguarded(program)));
    result.unwrap_or_else(|_| Err(JitError::Codegen("the code generator panicked".into())))
}

fn compile_unguarded(program: &Program) -> Result<NativeCode, JitError> {
    let mut module = JITModule::new(builder(isa("speed", "backtracking")?));
    let fast = isa("none", "single_pass")?;
    let layout = Layout::new(program);
    // Only what is specialised gains by it.
    let split = (EntryPoint::General.is_useful(program)).then(|| paths::split(program));
    let shims = import_shims(&mut module)?;
    let jobs = EntryPoint::ALL
        .into_iter()
        .filter(|entry_point| entry_point.is_useful(program))
        .map(|entry_point| Job::new(&mut module, &shims, entry_point))
        .collect::<Result<Vec<_>, _>>()?;
    let isas = Isas {
        best: module.isa(),
        fast: &*fast,
        frontend: module.target_config(),
    };
    let results: Vec<Result<Option<Compiled>, JitError>> = std::thread::scope(|scope| {
        let isas = &isas;
        let (layout, split) = (&layout, &split);
        let threads: Vec<_> = (jobs.into_iter())
            .map(|job| {
                let split = split
                    .as_ref()
                    .filter(|_| job.entry_point == EntryPoint::FastPath);
                let program = split.unwrap_or(program);
                scope.spawn(move || job.run(program, layout, isas))
            })
            .collect();
        let panicked = |_| Err(JitError::Codegen("the code generator panicked".into()));
        (threads.into_iter())
            .map(|thread| thread.join().unwrap_or_else(panicked))
            .collect()
    });
    let mut stats = CompileStats::default();
    let mut defined = Vec::new();
    for compiled in results {
        if let Some(compiled) = compiled? {
            compiled.define(&mut module, &mut stats)?;
            defined.push((compiled.entry_point, compiled.id));
        }
    }
    module.finalize_definitions().map_err(codegen_error)?;
    let mut functions = [None; EntryPoint::ALL.len()];
    for (entry_point, id) in defined {
        functions[entry_point as usize] = Some(module.get_finalized_function(id));
    }
    Ok(NativeCode {
        module,
        stats,
        functions,
    })
}

fn codegen_error(error: impl std::fmt::Display) -> JitError {
    JitError::Codegen(error.to_string())
}

fn isa(opt_level: &str, regalloc: &str) -> Result<OwnedTargetIsa, JitError> {
    let mut flags = settings::builder();
    let verifier = if cfg!(debug_assertions) {
        "true"
    } else {
        "false"
    };
    for (name, value) in [
        ("opt_level", opt_level),
        ("regalloc_algorithm", regalloc),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("unwind_info", "false"),
        // Frames of programs with very wide values exceed the guard page of the stack.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("enable_verifier", verifier),
    ] {
        (flags.set(name, value)).map_err(|e| JitError::Host(e.to_string()))?;
    }
    cranelift_native::builder()
        .map_err(|e| JitError::Host(e.to_string()))?
        .finish(settings::Flags::new(flags))
        .map_err(|e| JitError::Host(e.to_string()))
}

fn builder(isa: OwnedTargetIsa) -> JITBuilder {
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    for shim in Shim::ALL {
        builder.symbol(shim.symbol(), shim.address());
    }
    builder
}

fn import_shims(module: &mut JITModule) -> Result<Vec<FuncId>, JitError> {
    let call_conv = module.target_config().default_call_conv;
    let import = |shim: &Shim| {
        let signature = shim.signature(call_conv);
        module
            .declare_function(shim.symbol(), Linkage::Import, &signature)
            .map_err(codegen_error)
    };
    Shim::ALL.iter().map(import).collect()
}

/// Ways to compile for this machine.
struct Isas<'a> {
    best: &'a dyn TargetIsa,
    fast: &'a dyn TargetIsa,
    frontend: TargetFrontendConfig,
}

/// A function to be generated and compiled.
struct Job {
    entry_point: EntryPoint,
    id: FuncId,
    context: Context,
    shims: Vec<FuncRef>,
}

impl Job {
    fn new(
        module: &mut JITModule,
        shims: &[FuncId],
        entry_point: EntryPoint,
    ) -> Result<Job, JitError> {
        let mut context = module.make_context();
        let signature = &mut context.func.signature;
        signature.params.push(AbiParam::new(I64));
        if entry_point.takes_packets() {
            signature.params.extend([AbiParam::new(I64); 2]);
        }
        if entry_point.is_fast_path() {
            // Where it stopped.
            signature.returns.push(AbiParam::new(I64));
        }
        let id = module
            .declare_function(entry_point.symbol(), Linkage::Local, signature)
            .map_err(codegen_error)?;
        let shims = (shims.iter())
            .map(|&shim| module.declare_func_in_func(shim, &mut context.func))
            .collect();
        Ok(Job {
            entry_point,
            id,
            context,
            shims,
        })
    }

    fn run(
        mut self,
        program: &Program,
        layout: &Layout,
        isas: &Isas<'_>,
    ) -> Result<Option<Compiled>, JitError> {
        let input = Input {
            program,
            layout,
            entry_point: self.entry_point,
            shims: &self.shims,
        };
        let mut builder_context = FunctionBuilderContext::new();
        let function = &mut self.context.func;
        if !generate(&input, function, &mut builder_context, isas.frontend) {
            return Ok(None);
        }
        let instructions = function.dfg.num_insts();
        let merged = merged(function);
        let isa = if instructions > LARGE_FUNCTION {
            isas.fast
        } else {
            isas.best
        };
        (self.context)
            .compile(isa, &mut ControlPlane::default())
            .map_err(|e| JitError::Codegen(format!("{:?}", e.inner)))?;
        Ok(Some(Compiled {
            entry_point: self.entry_point,
            id: self.id,
            context: self.context,
            instructions,
            merged,
        }))
    }
}

/// Machine code that is not in its place yet.
struct Compiled {
    entry_point: EntryPoint,
    id: FuncId,
    context: Context,
    instructions: usize,
    merged: usize,
}

/// How many values blocks are given by those that lead to them.
fn merged(function: &Function) -> usize {
    let (dfg, layout) = (&function.dfg, &function.layout);
    let values = |inst: Inst| {
        let to = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
        to.iter()
            .map(|call| call.len(&dfg.value_lists))
            .sum::<usize>()
    };
    let ends = layout.blocks().filter_map(|block| layout.last_inst(block));
    ends.map(values).sum()
}

impl Compiled {
    fn define(&self, module: &mut JITModule, stats: &mut CompileStats) -> Result<(), JitError> {
        let code = self.context.compiled_code();
        let code = code.ok_or_else(|| JitError::Codegen("no code".into()))?;
        let relocations: Vec<ModuleReloc> = (code.buffer.relocs().iter())
            .map(|reloc| ModuleReloc::from_mach_reloc(reloc, &self.context.func, self.id))
            .collect();
        let alignment = code.buffer.alignment.into();
        module
            .define_function_bytes(self.id, alignment, code.code_buffer(), &relocations)
            .map_err(codegen_error)?;
        stats.instructions += self.instructions;
        stats.merged += self.merged;
        stats.code_bytes += code.code_buffer().len();
        Ok(())
    }
}
