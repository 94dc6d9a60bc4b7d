//! The reference executor: walks the program's tree over [`ir::Bits`], exactly as the documentation of [`ir::program`] says.
//!
//! It is meant to be read. It holds no state of its own, knows no tables but through [`crate::runtime::Runtime`], and writes what it
//! does to the trace when there is one.

use crate::exec::{Executor, PacketContext};
use ir::{Layout, Program};
use std::sync::Arc;

/// The interpreter of one program.
#[derive(Clone, Debug)]
pub struct Interpreter {
    program: Arc<Program>,
    layout: Layout,
}

impl Interpreter {
    /// Of a verified program.
    pub fn new(program: Arc<Program>) -> Interpreter {
        Interpreter {
            layout: Layout::new(&program),
            program,
        }
    }
}

impl Executor for Interpreter {
    fn ingress(&self, _cx: &mut PacketContext<'_>) {}

    fn parse(&self, _cx: &mut PacketContext<'_>) {}

    fn egress(&self, _cx: &mut PacketContext<'_>) {}
}
