//! Makes executable memory of a program, and runs it on packets.

use crate::code::{Half, Input, emit_capacity, generate};
use crate::frame::{Context, Frame, drop_reason, preserve_of, way};
use crate::shims::Shim;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, FuncRef};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use engine::{
    DropReason, Executor, Intents, Output, PacketContext, Stop, Straight, StraightContext, Way,
};
use ir::verify::{VerifyError, verify};
use ir::{Layout, Program};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};

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

/// What compilation made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileStats {
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// Instructions of the code generator's own intermediate form, before optimisation.
    pub instructions: usize,
}

/// A function of a half.
type HalfFn = unsafe extern "C" fn(*mut Frame);

/// The function of the straight way; gives a code of [`way`].
type StraightFn = unsafe extern "C" fn(*mut Frame) -> u64;

/// Picoseconds in a microsecond, the unit of v1model's timestamps.
const PS_PER_US: u64 = 1_000_000;

/// A program as machine code.
pub struct JitExecutor {
    program: Arc<Program>,
    stats: CompileStats,
    /// Limbs that the state array must have.
    state_limbs: usize,
    /// Bytes that the deparser may write without asking for room.
    emit_capacity: usize,
    straight: StraightFn,
    ingress: HalfFn,
    parse: HalfFn,
    egress: HalfFn,
    /// Owns the memory that the functions are in; never locked but to be freed.
    module: ManuallyDrop<Mutex<JITModule>>,
}

impl fmt::Debug for JitExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JitExecutor")
            .field("program", &self.program.name)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// Compiles a program.
pub fn compile(program: Arc<Program>) -> Result<JitExecutor, JitError> {
    verify(&program).map_err(JitError::Invalid)?;
    let mut module = new_module()?;
    let mut compiler = Compiler::new(&mut module)?;
    let layout = Layout::new(&program);
    let mut ids = Vec::new();
    for half in Half::ALL {
        ids.push(compiler.function(&program, &layout, half)?);
    }
    let stats = compiler.stats;
    module.finalize_definitions().map_err(codegen_error)?;
    let function = |id: FuncId| {
        let address = module.get_finalized_function(id);
        // SAFETY: the function was defined with this signature in the platform's calling convention, and its memory is
        // freed only when the executor that gets the pointer is dropped.
        unsafe { std::mem::transmute::<*const u8, HalfFn>(address) }
    };
    let straight = module.get_finalized_function(ids[3]);
    Ok(JitExecutor {
        state_limbs: layout.limbs(),
        emit_capacity: emit_capacity(&program),
        // SAFETY: as above, with the signature of the straight way.
        straight: unsafe { std::mem::transmute::<*const u8, StraightFn>(straight) },
        ingress: function(ids[0]),
        parse: function(ids[1]),
        egress: function(ids[2]),
        stats,
        module: ManuallyDrop::new(Mutex::new(module)),
        program,
    })
}

fn codegen_error(error: impl fmt::Display) -> JitError {
    JitError::Codegen(error.to_string())
}

fn new_module() -> Result<JITModule, JitError> {
    let mut flags = settings::builder();
    let verifier = if cfg!(debug_assertions) {
        "true"
    } else {
        "false"
    };
    for (name, value) in [
        ("opt_level", "speed"),
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
    let isa = cranelift_native::builder()
        .map_err(|e| JitError::Host(e.to_string()))?
        .finish(settings::Flags::new(flags))
        .map_err(|e| JitError::Host(e.to_string()))?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    for shim in Shim::ALL {
        builder.symbol(shim.symbol(), shim.address());
    }
    Ok(JITModule::new(builder))
}

struct Compiler<'m> {
    module: &'m mut JITModule,
    shims: Vec<FuncId>,
    stats: CompileStats,
}

impl<'m> Compiler<'m> {
    fn new(module: &'m mut JITModule) -> Result<Compiler<'m>, JitError> {
        let call_conv = module.target_config().default_call_conv;
        let shims = Shim::ALL
            .iter()
            .map(|shim| {
                let signature = shim.signature(call_conv);
                module
                    .declare_function(shim.symbol(), Linkage::Import, &signature)
                    .map_err(codegen_error)
            })
            .collect::<Result<_, _>>()?;
        Ok(Compiler {
            module,
            shims,
            stats: CompileStats::default(),
        })
    }

    fn function(
        &mut self,
        program: &Program,
        layout: &Layout,
        half: Half,
    ) -> Result<FuncId, JitError> {
        let mut context = self.module.make_context();
        context.func.signature.params.push(AbiParam::new(I64));
        if half == Half::Straight {
            context.func.signature.returns.push(AbiParam::new(I64));
        }
        let signature = &context.func.signature;
        let id = (self.module)
            .declare_function(half.symbol(), Linkage::Local, signature)
            .map_err(codegen_error)?;
        let shims: Vec<FuncRef> = (self.shims.iter())
            .map(|&shim| self.module.declare_func_in_func(shim, &mut context.func))
            .collect();
        let input = Input {
            program,
            layout,
            half,
            shims: &shims,
        };
        let frontend = self.module.target_config();
        let mut builder_context = FunctionBuilderContext::new();
        if !generate(&input, &mut context.func, &mut builder_context, frontend) {
            let symbol = half.symbol();
            return Err(JitError::Codegen(format!("{symbol} is too large")));
        }
        self.stats.instructions += context.func.dfg.num_insts();
        (self.module)
            .define_function(id, &mut context)
            .map_err(|e| JitError::Codegen(format!("{e:?}")))?;
        if let Some(code) = context.compiled_code() {
            self.stats.code_bytes += code.code_buffer().len();
        }
        Ok(id)
    }
}

impl Drop for JitExecutor {
    fn drop(&mut self) {
        // SAFETY: the field is not used again.
        let module = unsafe { ManuallyDrop::take(&mut self.module) };
        let module = match module.into_inner() {
            Ok(module) => module,
            Err(poisoned) => poisoned.into_inner(),
        };
        // SAFETY: the functions run only while the executor is borrowed, and their addresses do not leave it.
        unsafe { module.free_memory() }
    }
}

impl JitExecutor {
    /// The program that was compiled.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// What compilation made.
    pub fn stats(&self) -> CompileStats {
        self.stats
    }

    /// Runs one half.
    ///
    /// # Panics
    /// If the state array is too short, or more has been consumed than there is: the caller violates the contract of
    /// [`PacketContext`].
    fn run(&self, function: HalfFn, cx: &mut PacketContext<'_>) {
        assert!(cx.state.len() >= self.state_limbs, "state array too short");
        assert!(
            cx.consumed <= cx.packet.len(),
            "consumed more than the packet"
        );
        cx.emitted.clear();
        let mut context = Context {
            now_ps: cx.now_ps,
            runtime: &mut *cx.runtime,
            emitted: &mut *cx.emitted,
        };
        let (packet, len) = (cx.packet.as_ptr().cast_mut(), cx.packet.len());
        let mut frame = Frame::new(cx.state.as_mut_ptr(), packet, len, &mut context);
        frame.consumed = cx.consumed as u64;
        // SAFETY: the function was generated for this program, which is verified. It reads and writes `state` within its
        // layout (checked above), only reads `packet`, within `packet_len`, and writes at most `emit_capacity` bytes behind
        // `emitted` (made room for by `egress`; the others write none) unless it asks `reserve` for more. Only shims use
        // `context`, one at a time, and nothing else uses what it refers to meanwhile; the pointer's lifetime ends with this call.
        unsafe { function(&raw mut frame) };
        // SAFETY: the function has written the first `emitted_len` bytes behind `emitted`, the vector's own memory.
        unsafe { cx.emitted.set_len(frame.emitted_len as usize) };
        cx.consumed = frame.consumed as usize;
        take_intents(&frame, &mut cx.intents);
    }

    /// Runs packets on the straight way.
    ///
    /// # Panics
    /// If the state array is too short.
    fn run_straight(&self, cx: &mut StraightContext<'_>) -> Straight {
        assert!(cx.state.len() >= self.state_limbs, "state array too short");
        cx.emitted.clear();
        cx.emitted.reserve(self.emit_capacity);
        let mut context = Context {
            now_ps: cx.now_ps,
            runtime: &mut *cx.runtime,
            emitted: &mut *cx.emitted,
        };
        let state = cx.state.as_mut_ptr();
        let mut frame = Frame::new(state, std::ptr::null_mut(), 0, &mut context);
        frame.now_us = cx.now_ps / PS_PER_US;
        for (i, (port, packet)) in cx.packets.iter_mut().enumerate() {
            let bytes = packet.bytes_mut();
            frame.packet_len = bytes.len() as u64;
            frame.packet = bytes.as_mut_ptr();
            frame.port = (*port).into();
            // SAFETY: as in `run`, but that the function may write to `packet`, within `packet_len`, which is this call's alone.
            // It sets again whatever of the frame it reads or an earlier run for another packet may have set.
            let code = unsafe { (self.straight)(&raw mut frame) };
            let out_port = (code >> 8) as u32;
            match code & 0xff {
                way::SENT_IN_PLACE => {}
                way::SENT => {
                    // SAFETY: the function has written these bytes, to where the vector's memory is now.
                    let emitted = unsafe { frame.emitted_bytes() };
                    packet.replace_front(frame.consumed as usize, emitted);
                }
                stopped @ (way::AFTER_INGRESS | way::AFTER_EGRESS) => {
                    if stopped == way::AFTER_EGRESS {
                        // SAFETY: as above.
                        unsafe { context.emitted.set_len(frame.emitted_len as usize) };
                    }
                    return Straight::Stopped(stop(i, &frame, stopped, out_port));
                }
                dropped => {
                    let reason = drop_reason(dropped - way::DROPPED);
                    cx.drops[reason.unwrap_or(DropReason::IngressDrop) as usize] += 1;
                    continue;
                }
            }
            if let Some(length) = frame.truncate.checked_sub(1) {
                packet.truncate(length as usize);
            }
            cx.out.push(Output {
                port: out_port,
                packet: std::mem::take(packet),
            });
        }
        Straight::Done
    }
}

/// What is told of a packet that left the straight way.
#[cold]
fn stop(packet: usize, frame: &Frame, code: u64, port: u32) -> Stop {
    let mut intents = Intents::default();
    take_intents(frame, &mut intents);
    Stop {
        packet,
        way: match code {
            way::AFTER_INGRESS => Way::AfterIngress,
            _ => Way::AfterEgress(port),
        },
        consumed: frame.consumed as usize,
        intents,
    }
}

/// Takes over what the frame says that the program asked for.
fn take_intents(frame: &Frame, intents: &mut Intents) {
    if frame.clone != 0 {
        let preserve = preserve_of(frame.clone_preserve);
        intents.clone = Some((frame.clone_session as u32, preserve));
    }
    if let Some(code) = frame.resubmit.checked_sub(1) {
        intents.resubmit = Some(preserve_of(code));
    }
    if let Some(code) = frame.recirculate.checked_sub(1) {
        intents.recirculate = Some(preserve_of(code));
    }
    if let Some(length) = frame.truncate.checked_sub(1) {
        intents.truncate = Some(length as u32);
    }
    if let Some(reason) = drop_reason(frame.drop) {
        intents.drop = Some(reason);
    }
}

impl Executor for JitExecutor {
    fn ingress(&self, cx: &mut PacketContext<'_>) {
        self.run(self.ingress, cx);
    }

    fn parse(&self, cx: &mut PacketContext<'_>) {
        self.run(self.parse, cx);
    }

    fn egress(&self, cx: &mut PacketContext<'_>) {
        cx.emitted.clear();
        cx.emitted.reserve(self.emit_capacity);
        self.run(self.egress, cx);
    }

    fn straight(&self, cx: &mut StraightContext<'_>) -> Straight {
        self.run_straight(cx)
    }
}
