//! Registers, counters, meters, digests and value sets.

/// A `register` array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Width of a cell in bits.
    pub width: u32,
    /// Number of cells. A read beyond the last gives zero, a write beyond it does nothing; both are counted.
    pub size: u64,
    /// `@port_state`: the switch's agent keeps the bit of each port at 1 while the port is up and at 0 while it is down, from
    /// the start of the program on: bit `port % width` of cell `port / width`, so that cells of one bit are ports. The program may
    /// write it too; the next change of the port overwrites that.
    pub port_state: bool,
}

/// The unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Both.
    Both,
}

/// A `counter` or `direct_counter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Unit.
    pub unit: CounterUnit,
    /// Number of cells; `None` for a direct counter, which has one cell for each entry. A count beyond the
    /// last cell does nothing.
    pub size: Option<u64>,
}

/// A `meter` or `direct_meter` (RFC 2698, colour-blind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// True if rates are in bytes, false if they are in packets.
    pub bytes: bool,
    /// Number of cells; `None` for a direct meter, which has one cell for each entry.
    pub size: Option<u64>,
}

/// A digest message type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Widths of the members in bits.
    pub widths: Vec<u32>,
}

/// A header between switch and controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerHeader {
    /// Name of its type for the control plane.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Its fields in the order of the wire, including those that the control plane does not know.
    pub fields: Vec<ControllerField>,
}

/// A field of a header between switch and controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerField {
    /// P4Runtime id.
    pub id: u32,
    /// Width in bits.
    pub width: u32,
}

/// A parser value set, filled by the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet {
    /// Control-plane name.
    pub name: String,
    /// P4Runtime id.
    pub id: u32,
    /// Width in bits of each member of the key.
    pub widths: Vec<u32>,
    /// The number of members that it can hold.
    pub size: u64,
}
