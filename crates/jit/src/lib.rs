//! `jit`: the IR to machine code, with Cranelift.
//!
//! [`compile`] makes a [`JitExecutor`] of a verified program: native functions, one for each way in which the
//! engine enters the pipeline (all of it, for a packet on the fast path; parser to ingress; the parser alone; egress
//! to deparser), and one that prefetches. Fields are values in registers, not memory; a header's bounds are checked once; fields that
//! nobody reads are not loaded, bytes that nobody changes not written ([`headers`]); table actions are expanded in place, and so are
//! lookups of exact keys and short prefixes ([`views`]). What the code does is what `ir::program` says and what the interpreter in
//! `engine` does, bit for bit; a difference is a bug.
//!
//! All unsafe code that making ([`module`]) and running machine code needs is here: entering it ([`executor`]), what it calls
//! ([`shims`], [`preserving`]) and where it looks up in place ([`views`]). This room deliberately knows nothing of P4 source, of how other
//! tables look up, or of what happens to a packet between the halves of the pipeline; it writes no trace.

mod code;
mod executor;
mod frame;
mod headers;
mod memory;
mod module;
mod paths;
mod preserving;
mod shims;
mod usage;
mod views;

pub use executor::{CompileStats, JitError, JitExecutor, compile};
