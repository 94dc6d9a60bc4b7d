//! `ir`: the typed intermediate representation of one program.
//!
//! A [`Program`] is what the compiler produces and what both executors (the interpreter in `engine`, the machine-code
//! generator in `jit`) run. It is deliberately small and low-level: structs, tuples, header stacks, header unions,
//! functions, sub-parsers, sub-controls and copy-in/copy-out are all gone, lowered by `compile` into scalar
//! [`Slot`]s and structured statements. Every expression is free of side effects.
//!
//! This room knows nothing of P4 source syntax, of table lookup, of packets in flight or of machine code.
//!
//! - [`architecture`]: the surroundings of the blocks of a program, one file for each architecture.
//! - [`bits`]: the value type, a bit string of fixed width, with the arithmetic of P4_16.
//! - [`program`]: the representation, whose documentation is the meaning that both executors implement.
//! - [`layout`]: the place of each slot in the per-packet state array that both executors share.
//! - [`text`]: the text form, printed and parsed; it is also the compiled artifact.
//! - [`verify`]: the list of invariants, and the check that a program holds them.
//! - `arbitrary` (feature of that name): random valid programs, for tests; [`text`] then has `preamble` for written ones.
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "arbitrary"))]
pub mod arbitrary;
pub mod architecture;
pub mod bits;
pub mod layout;
pub mod program;
mod reach;
mod reads;
pub mod text;
pub mod verify;

pub use architecture::{
    Architecture, BlockKind, Bridged, Description, Forwarding, Input, Pipeline, SlotValue, Stage,
};
pub use bits::Bits;
pub use layout::Layout;
pub use program::*;
pub use reads::statements;
