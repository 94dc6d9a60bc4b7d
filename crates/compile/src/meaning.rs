//! What externs can mean. The tables of the architectures (in `lower`) say which declaration has which
//! meaning.

use ir::HashAlgorithm;

/// The meaning of an extern: `C` is the type of meanings that all architectures may use, `O` stands for one
/// of an architecture alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<C, O> {
    /// A meaning that it can have in all architectures.
    Common(C),
    /// A meaning that only its architecture gives.
    Own(O),
}

impl<C: Copy, O> Meaning<C, O> {
    /// Returns the meaning, with `own` in place of what stands for a meaning of one architecture alone.
    pub fn with<P>(&self, own: P) -> Meaning<C, P> {
        match self {
            Meaning::Common(common) => Meaning::Common(*common),
            Meaning::Own(_) => Meaning::Own(own),
        }
    }

    /// Returns what stands for a meaning of one architecture alone; `None` for a common meaning.
    pub fn own(&self) -> Option<&O> {
        match self {
            Meaning::Common(_) => None,
            Meaning::Own(own) => Some(own),
        }
    }
}

/// An extern function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Rejects the packet if a condition is false.
    Verify,
    /// `static_assert`: the compiler evaluates the condition, and nothing is left to run.
    StaticAssert,
    /// Ends the packet if a condition is false.
    Assert,
}

/// A kind of extern object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The packet as the parser reads it.
    PacketIn,
    /// The packet as the deparser writes it.
    PacketOut,
    /// Cells that the program reads and writes by index.
    Register,
    /// Cells, chosen by index, that count packets, bytes or both.
    Counter,
    /// A count for each entry of a table.
    DirectCounter,
    /// Cells, chosen by index, that measure rates and return colours.
    Meter,
    /// A meter for each entry of a table.
    DirectMeter,
    /// Actions that entries of several tables share.
    ActionProfile,
    /// An action profile with groups of actions, of which a hash of the packet chooses one.
    ActionSelector,
    /// The ones' complement sum of all data, given in one call.
    Checksum16,
}

/// A method of an extern object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Takes a header from the packet.
    Extract,
    /// Returns the next bits of the packet, without taking them from it.
    Lookahead,
    /// Skips bits.
    Advance,
    /// Returns the length of the packet in bytes.
    PacketLength,
    /// Appends headers.
    Emit,
    /// Reads a cell: `read(out value, in index)`.
    RegisterReadTo,
    /// Reads a cell: `read(in index)`.
    RegisterRead,
    /// Writes a cell.
    RegisterWrite,
    /// Counts the packet in the cell with a given index.
    Count,
    /// Counts the packet at the table entry that was hit.
    CountDirect,
    /// Writes the colour of the packet by the meter cell `index`: `execute_meter(in index, out colour)`.
    MeterExecuteTo,
    /// Writes the colour of the packet by the meter of the table entry that was hit: `read(out colour)`.
    DirectMeterReadTo,
    /// Returns the checksum of the data in the argument.
    Checksum16Get,
}

/// A property of tables that only an architecture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Names a direct counter.
    Counter,
    /// Names a direct meter.
    Meter,
    /// Names an action profile or selector.
    Implementation,
    /// A truth value: whether entries expire.
    Timeout,
    /// An enum; its second member means that entries expire.
    TimeoutEnum,
    /// The action that runs for a group without members.
    EmptyGroupAction,
}

/// An algorithm that computes from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// One that always gives the same result for the same data.
    Of(HashAlgorithm),
    /// Draws a number, whatever the data.
    Random,
}
