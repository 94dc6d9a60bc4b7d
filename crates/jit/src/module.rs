//! Makes executable memory of a program's functions.
//!
//! Functions are generated and compiled independently of each other, in threads, and then put into one module. A function that becomes
//! too large is left out. Large ones are compiled with less care, so that no program takes long. A failure of the code
//! generator is an error, never a panic.

use crate::analysis::Analysis;
use crate::code::{EntryPoint, Input, generate};
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
use ir::verify::VerifyError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of instructions beyond which a function is compiled quickly, with little optimisation.
const LARGE_FUNCTION: usize = 40_000;

/// Why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JitError {
    /// The program violates invariants of the IR.
    Invalid(Vec<VerifyError>),
    /// The code generator does not support this machine.
    Host(String),
    /// The program is too large: its actions are expanded wherever a table with them is applied, and that has a limit.
    /// The interpreter runs it all the same.
    Codegen(String),
}

impl fmt::Display for JitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JitError::Invalid(errors) => {
                write!(f, "the program is invalid")?;
                errors.iter().try_for_each(|e| write!(f, "; {e}"))
            }
            JitError::Host(why) => write!(f, "no machine code for this host: {why}"),
            JitError::Codegen(why) => write!(f, "code generation failed: {why}"),
        }
    }
}

impl std::error::Error for JitError {}

/// The statistics of a compilation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileStats {
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// Instructions of the code generator's own intermediate form, before optimisation.
    pub instructions: usize,
    /// Number of values that jumps pass to blocks. The time of compilation grows with it as with the
    /// instructions.
    pub merged: usize,
    /// Machine code makes the replicas of multicast groups; else the switch does, if the program has any.
    pub makes_replicas: bool,
}

/// The functions of a program in executable memory.
pub(crate) struct NativeCode {
    /// Owns the memory.
    pub module: JITModule,
    /// The statistics of the compilation.
    pub stats: CompileStats,
    /// Their addresses, by [`EntryPoint`]; `None` where the program has no use for the function, or it would
    /// be too large.
    pub functions: [Option<*const u8>; EntryPoint::ALL.len()],
}

/// Compiles all functions of a verified program into executable memory. Returns an error if the code
/// generator fails, even by a panic.
pub(crate) fn compile_functions(analysis: &Analysis<'_>) -> Result<NativeCode, JitError> {
    let result = catch_unwind(AssertUnwindSafe(|| compile_unguarded(analysis)));
    result.unwrap_or_else(|_| Err(JitError::Codegen("the code generator panicked".into())))
}

fn compile_unguarded(analysis: &Analysis<'_>) -> Result<NativeCode, JitError> {
    let mut module = empty_module()?;
    let fast = isa("none", "single_pass")?;
    let shims = import_shims(&mut module)?;
    let jobs = EntryPoint::ALL
        .into_iter()
        .filter(|entry_point| entry_point.is_useful(analysis))
        .map(|entry_point| Job::new(&mut module, &shims, entry_point))
        .collect::<Result<Vec<_>, _>>()?;
    let isas = Isas {
        best: module.isa(),
        fast: &*fast,
        frontend: module.target_config(),
    };
    let results: Vec<Result<Option<Compiled>, JitError>> = std::thread::scope(|scope| {
        let isas = &isas;
        let threads: Vec<_> = (jobs.into_iter())
            .map(|job| scope.spawn(move || job.run(analysis, isas)))
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
            defined.push((compiled.job.entry_point, compiled.job.id));
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

/// Returns a module for this machine that contains no functions yet. Fails if the machine is not supported.
pub(crate) fn empty_module() -> Result<JITModule, JitError> {
    Ok(JITModule::new(builder(isa("speed", "backtracking")?)))
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

/// The code generators for this machine: with the best code, and with the fastest compilation.
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
            // The place at which it stopped.
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
        analysis: &Analysis<'_>,
        isas: &Isas<'_>,
    ) -> Result<Option<Compiled>, JitError> {
        let input = Input {
            analysis,
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
            job: self,
            instructions,
            merged,
        }))
    }
}

/// Machine code that is not in its place yet.
struct Compiled {
    job: Job,
    instructions: usize,
    merged: usize,
}

/// Counts the arguments that all jumps and branches of a function pass to the blocks that they lead to.
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
        let Job { context, id, .. } = &self.job;
        let code = context.compiled_code();
        let code = code.ok_or_else(|| JitError::Codegen("no code".into()))?;
        let relocations: Vec<ModuleReloc> = (code.buffer.relocs().iter())
            .map(|reloc| ModuleReloc::from_mach_reloc(reloc, &context.func, *id))
            .collect();
        let alignment = code.buffer.alignment.into();
        module
            .define_function_bytes(*id, alignment, code.code_buffer(), &relocations)
            .map_err(codegen_error)?;
        stats.instructions += self.instructions;
        stats.merged += self.merged;
        stats.code_bytes += code.code_buffer().len();
        Ok(())
    }
}
