//! The compiler's part of the architecture that only tests have: its extern `hash` has nothing but the name
//! in common with v1model's.

use ir::{BinaryOp, Expr};

use super::place::Value;
use super::room::Externs;
use super::{Body, Room, build};
use crate::hir::Arg;
use crate::meaning::Meaning::Own;

static EXTERNS: Externs = Externs {
    functions: &[("bit<8> hash(in bit<8>)", Own(|l, call| l.ones(call.args)))],
    objects: &[],
    properties: &[],
    algorithms: &[],
    enums: &[],
};

/// The compiler's part of this architecture. Tests bring the include file along.
pub(super) static ROOM: Room = Room {
    externs: &EXTERNS,
    include_files: &[],
    text: "",
};

impl Body<'_, '_> {
    /// Lowers `hash(value)` and returns the number of ones in the value.
    fn ones(&mut self, args: &[Arg]) -> Value {
        let value = self.scalar_arg(args, 0);
        let slots = &self.program.slots;
        let bits = (0..8).map(|i| {
            let bit = build::slice(value.clone(), i, i, slots);
            build::resize(bit, 8, slots)
        });
        let add = |sum: Expr, bit: Expr| build::binary(BinaryOp::Add, sum, bit, slots);
        Value::Bits(bits.fold(build::constant(8, 0), add))
    }
}
