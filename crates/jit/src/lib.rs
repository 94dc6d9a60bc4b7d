//! `jit`: the IR to machine code, with Cranelift.
//!
//! [`compile`] makes a [`JitExecutor`] of a verified program. [`analysis`] finds out once what code generation has to know, [`code`]
//! generates native functions from it, one for each part of the pipeline that the engine enters (all of it, for a packet on the fast
//! path; parser to ingress; the parser alone; egress to deparser), and one that prefetches. Fields are values in registers, not memory; a
//! header's bounds are checked once; fields that nobody reads are not loaded, bytes that nobody changes not written; table actions are
//! expanded in place, and so are lookups of exact keys and short prefixes ([`views`]). The code does what `ir::program` says and
//! what the interpreter in `engine` does, bit for bit; a difference is a bug.
//!
//! All unsafe code that making ([`module`]) and running machine code needs is here: entering it ([`executor`]), the functions that it
//! calls ([`shims`], [`calls`], [`preserving`]) and its lookups in place ([`views`]). This room deliberately knows nothing of P4 source, of how
//! other tables look up, or of what happens to a packet between the halves of the pipeline; it writes no trace.

mod analysis;
mod calls;
mod code;
mod executor;
mod frame;
mod module;
mod notes;
mod preserving;
mod shims;
mod views;

pub use executor::{JitExecutor, compile};
pub use module::{CompileStats, JitError};
