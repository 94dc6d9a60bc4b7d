//! The invariants of a program, and the check that it holds them.
//!
//! A program may come from outside (it is a device configuration), and machine code is made of it without further
//! checks. So what an executor relies on is in this list, and nothing else is. [`verify()`] needs time and memory in
//! proportion to the program, whatever the program says. It does not ask whether a program is sensible.
//!
//! # Storage
//!
//! 1. A slot has 1 to [`Bits::MAX_WIDTH`] bits, and all slots together occupy at most [`MAX_STATE_LIMBS`] limbs.
//! 2. Every slot id is in range.
//! 3. A header's `valid` slot has 1 bit. A header has at most one varbit, whose length slot has 32 bits.
//! 4. A header without a varbit has whole bytes.
//! 5. A slot is the validity, a field or the length of at most one header, once, and then is not metadata of the architecture.
//! 6. The length of a varbit never exceeds the width of its slot: only `Extract`, `SetInvalid` and `Assign` write it, and
//!    `Assign` only a constant within the width, the length slot of a varbit that is not wider, or a `Mux` of these.
//! 7. The slots of the architecture's metadata are distinct and have the widths that [`crate::architecture`] says.
//! 8. `errors` begins with the seven of core.p4, names none twice, and fits [`ERROR_WIDTH`].
//!
//! # Objects
//!
//! 9. Among the objects of one kind (tables, actions, registers, counters, meters, digests, value sets, controller headers, action profiles) no two have the same name
//!    or the same P4Runtime id, and no id is 0; likewise the ids of the parameters of an action, and of the key fields of
//!    a table that are not selectors.
//! 10. A register has 1 to [`Bits::MAX_WIDTH`] bits; registers and indexed counters and meters together need at most
//!     [`MAX_OBJECT_BYTES`] bytes; tables, value sets and action profiles ask for at most [`MAX_TABLE_SIZE`] entries. The result of a selector's hash has 1
//!     to 64 bits.
//! 11. Digests and value sets have at least one member, of 1 to [`Bits::MAX_WIDTH`] bits each and [`MAX_EXPR_WIDTH`] in all.
//! 12. A field list names no slot twice. The first lists are those of [`Bridged`] metadata, where the architecture has such.
//! 13. The parameters of an action have distinct slots.
//!
//! # Tables
//!
//! 14. Key fields have 1 to [`Bits::MAX_WIDTH`] bits each and [`MAX_EXPR_WIDTH`] in all, and at most one is `Lpm`.
//! 15. A table has at least one action, its ids are in range, and none occurs twice.
//! 16. The default action and the actions of entries are among the table's and their scope allows the use; each has one
//!     argument per parameter, of its width.
//! 17. An entry has one match per key field, of its kind and width; a prefix is not longer than the width; a value is zero
//!     outside its prefix or mask; a range is not empty. Tables without a key or with a selector have no entries.
//! 18. An entry's priority is positive if the table needs one and zero if not; no two entries have equal matches and priority.
//! 19. A direct counter or meter has no size and serves at most one table. A table's implementation is in range, and the
//!     table has no entries; tables that share one may have different actions.
//!
//! # Parser
//!
//! 20. There is a state, and the targets of transitions are in range. The program has the blocks that the architecture declares, each of its kind.
//!     The start of a parser is in range; that of the first is the first state.
//! 21. A select has at least one key. Each case has one match per key, or a single value set whose members have the widths of
//!     all keys. Values, masks, bounds and members have the width of their key; a value is zero outside its mask; a range is not
//!     empty; value set ids are in range.
//!
//! # Statements
//!
//! 22. The ids of headers, tables, registers, counters, meters, digests and field lists are in range.
//! 23. `Extract`, `Lookahead`, `Advance` and `Reject` occur in parsers only; `Emit` in deparsers only; `Exit` not in
//!     parsers; `Apply` in controls that apply tables only, so not in actions; `Clone`, `Resubmit`, `Recirculate` and
//!     `Truncate` in such controls and actions only, and not where packets are deparsed between the pipelines; `Digest` in such controls
//!     and actions, and in deparsers where packets are deparsed between the pipelines; a `Hash` of the payload not in parsers.
//! 24. The first pipeline and what it applies has no clone from egress and no `Recirculate`; the second and what it applies has no clone
//!     from ingress and no `Resubmit`.
//! 25. A label is below [`MAX_LABEL`] and given once in the program; a `Break` is inside the block or loop it names, in the
//!     same control, parser state or action.
//! 26. Sources and destinations have the widths that [`StmtKind`] says; `Apply` and `Digest` have one expression per key field
//!     and member; `Extract` has a length if and only if the header has a varbit; the data of a `Hash` has at most
//!     [`MAX_EXPR_WIDTH`] bits, the bounds of a `Random` at most 64; a `Lookahead` ends within [`MAX_LOOKAHEAD_BITS`].
//! 27. A case of a `Switch` lists at least one value, of the width of the switch, and no value occurs twice.
//! 28. `Count` and `MeterExecute` name no direct counter or meter. `DirectMeterRead` occurs in actions only; some table that has
//!     such an action has the meter that it names as its direct meter.
//! 29. The format of a `Log` has one `{}` per value.
//!
//! # Expressions
//!
//! 30. Operands have the widths that [`Expr`] and [`BinaryOp`] say; a slice lies within its operand; an extension extends.
//! 31. No value, constants included, is wider than [`MAX_EXPR_WIDTH`].
//!
//! # Size
//!
//! 32. Expressions nest at most [`MAX_EXPR_DEPTH`] deep.
//! 33. Statements nest at most [`MAX_NESTING`] deep.
//! 34. There are at most [`MAX_STATEMENTS`] statements, and all values of all expressions, entries and matches together
//!     have at most [`MAX_TOTAL_LIMBS`] limbs; a match of anything or of a value set counts as one.
//! 35. A location with a line names a file of the program.
//!
//! # What an executor cannot rely on
//!
//! Any index may be beyond a register, counter or meter; a `Random` may have `low > high`; an error value may be beyond
//! `errors`; any length may be beyond the packet; a header with a varbit may be valid with a length that makes no whole
//! bytes; fields of an invalid header may be non-zero if the compiler forgot a guard; a loop may never end (steps end it).

mod body;
mod objects;
#[cfg(test)]
mod tests;

use crate::*;
use std::collections::BTreeSet;
use std::fmt;

/// The number of limbs of 64 bits that all slots together may occupy.
pub const MAX_STATE_LIMBS: u64 = 1 << 16;
/// The largest width of an intermediate value in bits.
pub const MAX_EXPR_WIDTH: u32 = 4 * Bits::MAX_WIDTH;
/// The number of levels of operators that an expression may have.
pub const MAX_EXPR_DEPTH: u32 = 256;
/// The number of levels to which statements may nest.
pub const MAX_NESTING: u32 = 256;
/// The number of statements that a program may have.
pub const MAX_STATEMENTS: u64 = 1 << 20;
/// The number of limbs of 64 bits that all values of expressions, entries and matches of a program may have
/// together.
pub const MAX_TOTAL_LIMBS: u64 = 1 << 22;
/// The number of bytes that the registers, counters and meters of a program may need together.
pub const MAX_OBJECT_BYTES: u64 = 1 << 30;
/// The number of entries that a table or value set may ask for.
pub const MAX_TABLE_SIZE: u64 = 1 << 32;
/// Labels are smaller than this.
pub const MAX_LABEL: u32 = 1 << 20;
/// The largest distance in bits of a lookahead's end from the cursor.
pub const MAX_LOOKAHEAD_BITS: u32 = 1 << 20;

/// The number of violations that are reported at most.
const MAX_ERRORS: usize = 64;

/// The errors of core.p4, in its order.
pub const CORE_ERRORS: [&str; 7] = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
];

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// Its number in the list of this module.
    pub invariant: u32,
    /// Where, as in `table "ingress.t"` or `ingress @0:57`.
    pub place: String,
    /// A description of the violation.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} (invariant {})",
            self.place, self.message, self.invariant
        )
    }
}

impl std::error::Error for VerifyError {}

/// Checks that `program` fulfils every invariant of this module.
///
/// # Errors
///
/// The violations, in program order; after many violations the rest is left out.
pub fn verify(program: &Program) -> Result<(), Vec<VerifyError>> {
    let mut verifier = Verifier {
        program,
        errors: Vec::new(),
        roles: Roles::default(),
        labels: BTreeSet::new(),
        reach: vec![Reach::default(); program.actions.len()],
        statements: 0,
        limbs: 0,
    };
    verifier.objects();
    verifier.bodies();
    if verifier.errors.is_empty() {
        Ok(())
    } else {
        Err(verifier.errors)
    }
}

/// The place of a check, for messages.
#[derive(Clone, Copy)]
struct Place<'a> {
    kind: &'static str,
    name: &'a str,
    loc: Loc,
}

impl<'a> Place<'a> {
    fn new(kind: &'static str, name: &'a str) -> Place<'a> {
        Place {
            kind,
            name,
            loc: Loc::default(),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        if !self.name.is_empty() {
            write!(f, " {:?}", self.name)?;
        }
        if self.loc != Loc::default() {
            write!(f, " @{}:{}", self.loc.file, self.loc.line)?;
        }
        Ok(())
    }
}

/// The use of each slot by headers and the architecture's metadata.
#[derive(Default)]
struct Roles {
    /// For each slot, true if it is taken by a header or the architecture's metadata.
    taken: Vec<bool>,
    /// For each slot that holds the length of a varbit, the largest length in bits.
    max_length: Vec<Option<u32>>,
}

/// Whether tables of each pipeline apply an action.
#[derive(Clone, Copy, Default)]
struct Reach {
    ingress: bool,
    egress: bool,
}

impl Reach {
    fn of(pipeline: Pipeline) -> Reach {
        Reach {
            ingress: pipeline == Pipeline::INGRESS,
            egress: pipeline == Pipeline::EGRESS,
        }
    }
}

struct Verifier<'a> {
    program: &'a Program,
    errors: Vec<VerifyError>,
    roles: Roles,
    labels: BTreeSet<u32>,
    reach: Vec<Reach>,
    statements: u64,
    limbs: u64,
}

impl<'a> Verifier<'a> {
    fn check(
        &mut self,
        holds: bool,
        invariant: u32,
        place: Place<'_>,
        message: impl FnOnce() -> String,
    ) -> bool {
        if !holds && self.errors.len() < MAX_ERRORS {
            self.errors.push(VerifyError {
                invariant,
                place: place.to_string(),
                message: message(),
            });
        }
        holds
    }

    /// Returns the width of a slot in bits. Reports an id out of range, and returns `None`.
    fn slot(&mut self, slot: SlotId, place: Place<'_>) -> Option<u32> {
        let width = self.program.slots.get(slot.index()).map(|s| s.width);
        self.check(width.is_some(), 2, place, || {
            format!("there is no slot %{}", slot.0)
        });
        width
    }

    /// Adds a value of `width` bits (0 for a match of any value) to the size of the program, and returns
    /// whether the size is still within [`MAX_TOTAL_LIMBS`]. Reports the first value that exceeds it
    /// (invariant 34).
    fn spend(&mut self, width: u32, place: Place<'_>) -> bool {
        let before = self.limbs;
        self.limbs = before.saturating_add(u64::from(width.div_ceil(64).max(1)));
        // Reported when the line is crossed, not for every value beyond it.
        if before <= MAX_TOTAL_LIMBS {
            self.check(self.limbs <= MAX_TOTAL_LIMBS, 34, place, || {
                format!("the values of the program have more than {MAX_TOTAL_LIMBS} limbs")
            });
        }
        self.limbs <= MAX_TOTAL_LIMBS
    }

    /// Adds a constant to the size of the program (see [`Verifier::spend`]), and reports it if it is too wide
    /// (invariant 31).
    fn constant(&mut self, value: &Bits, place: Place<'_>) {
        self.spend(value.width(), place);
        self.check(value.width() <= MAX_EXPR_WIDTH, 31, place, || {
            format!("a constant has {} bits", value.width())
        });
    }

    fn location(&mut self, loc: Loc, place: Place<'_>) {
        let known = loc.line == 0 || (loc.file as usize) < self.program.files.len();
        self.check(known, 35, place, || {
            format!("there is no file {}", loc.file)
        });
    }
}
