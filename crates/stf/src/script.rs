//! A test script: commands with names and numbers as written.
//!
//! It knows no program; names and widths are resolved when a script runs.

use ir::Bits;

/// A parsed script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The commands, in order.
    pub lines: Vec<Line>,
}

impl Script {
    /// Returns whether the script checks anything besides that its commands are accepted: packets (even that none
    /// leaves), counters, registers or digests.
    pub fn checks_something(&self) -> bool {
        self.lines.iter().any(|line| {
            matches!(
                line.command,
                Command::Packet { .. }
                    | Command::Expect { .. }
                    | Command::CheckCounter { check: Some(_), .. }
                    | Command::CheckRegister { .. }
                    | Command::CheckDigest { .. }
            )
        })
    }
}

/// A command with its line number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line number, from 1.
    pub number: u32,
    /// The command.
    pub command: Command,
}

/// A line that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line number, from 1.
    pub number: u32,
    /// What is wrong with it.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.number, self.message)
    }
}

/// A command. Those marked *ours* are not in p4c's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `add TABLE [PRIORITY] FIELD:VALUE... ACTION(ARG:VALUE, ...) [= ID]`
    Add {
        /// Table.
        table: String,
        /// The priority; the highest wins.
        priority: Option<u32>,
        /// The fields with a match. Other fields match anything, except for exact ones, which must be zero.
        matches: Vec<(String, Pattern)>,
        /// The action of a hit.
        action: Call,
        /// The id by which `check_counter` refers to the entry.
        id: Option<String>,
    },
    /// `setdefault TABLE ACTION(ARG:VALUE, ...)`
    SetDefault {
        /// Table.
        table: String,
        /// The action of a miss.
        action: Call,
    },
    /// `remove all`: all entries of all tables.
    RemoveAll,
    /// `remove TABLE [PRIORITY] FIELD:VALUE...` (ours)
    Remove {
        /// Table.
        table: String,
        /// The priority with which it was added.
        priority: Option<u32>,
        /// The matches with which it was added.
        matches: Vec<(String, Pattern)>,
    },
    /// `packet PORT HEX`
    Packet {
        /// The port at which it arrives.
        port: u32,
        /// Bytes.
        data: Vec<u8>,
    },
    /// `expect PORT [HEX]`
    Expect {
        /// The port at which it leaves.
        port: u32,
        /// The expected contents.
        pattern: PacketPattern,
    },
    /// `no_packet`: states that nothing leaves except what is expected, which is checked in any case.
    NoPacket,
    /// `wait`: time passes.
    Wait,
    /// `check_counter NAME(INDEX or $ID) [packets|bytes OP NUMBER]`
    CheckCounter {
        /// Counter.
        counter: String,
        /// The cell.
        cell: Cell,
        /// The expected value; without one, the cell only has to exist.
        check: Option<CounterCheck>,
    },
    /// `check_register NAME INDEX OP NUMBER` (ours)
    CheckRegister {
        /// Register.
        register: String,
        /// Cell.
        index: u64,
        /// The operator of the comparison.
        comparison: Comparison,
        /// The number with which the cell is compared.
        value: Number,
    },
    /// `check_digest NAME [NUMBER...]` (ours): takes the oldest message that waits and compares its members.
    CheckDigest {
        /// Digest.
        digest: String,
        /// Members.
        values: Vec<Number>,
    },
    /// `mirroring_add SESSION PORT`
    MirroringAdd {
        /// Clone session.
        session: u32,
        /// The port of clones.
        port: u32,
    },
    /// `mirroring_add_mc SESSION GROUP`
    MirroringAddMulticast {
        /// Clone session.
        session: u32,
        /// The multicast group to whose ports clones go.
        group: u32,
    },
    /// `mirroring_delete SESSION`
    MirroringDelete {
        /// Clone session.
        session: u32,
    },
    /// `mirroring_get SESSION`: the session must exist.
    MirroringGet {
        /// Clone session.
        session: u32,
    },
    /// `mc_mgrp_create GROUP`
    GroupCreate {
        /// Multicast group.
        group: u32,
    },
    /// `mc_node_create RID PORT...`: nodes are numbered from 0 in order of creation.
    NodeCreate {
        /// `egress_rid` of its copies.
        rid: u16,
        /// Ports.
        ports: Vec<u32>,
    },
    /// `mc_node_update NODE PORT...`
    NodeUpdate {
        /// Node.
        node: u32,
        /// Ports.
        ports: Vec<u32>,
    },
    /// `mc_node_associate GROUP NODE`
    NodeAssociate {
        /// Multicast group.
        group: u32,
        /// Node.
        node: u32,
    },
    /// `counter_read NAME INDEX`: the cell must exist.
    CounterRead {
        /// Counter.
        counter: String,
        /// Cell.
        index: u64,
    },
    /// `counter_write NAME INDEX PACKETS BYTES`
    CounterWrite {
        /// Counter.
        counter: String,
        /// Cell.
        index: u64,
        /// Packets.
        packets: u64,
        /// Bytes.
        bytes: u64,
    },
    /// `register_read NAME INDEX`: the cell must exist.
    RegisterRead {
        /// Register.
        register: String,
        /// Cell.
        index: u64,
    },
    /// `register_write NAME INDEX VALUE`
    RegisterWrite {
        /// Register.
        register: String,
        /// Cell.
        index: u64,
        /// Value.
        value: Number,
    },
    /// `register_reset NAME`: all cells become zero.
    RegisterReset {
        /// Register.
        register: String,
    },
    /// `meter_get_rates NAME INDEX`: the cell must exist.
    MeterGetRates {
        /// Meter.
        meter: String,
        /// Cell.
        index: u64,
    },
    /// `meter_set_rates NAME INDEX RATE:BURST RATE:BURST`
    MeterSetRates {
        /// Meter.
        meter: String,
        /// Cell.
        index: u64,
        /// The committed rate, then the peak rate.
        rates: [Rate; 2],
    },
    /// `meter_array_set_rates NAME RATE:BURST RATE:BURST`: all cells.
    MeterArraySetRates {
        /// Meter.
        meter: String,
        /// The committed rate, then the peak rate.
        rates: [Rate; 2],
    },
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Action.
    pub name: String,
    /// Arguments by name.
    pub args: Vec<(String, Number)>,
}

/// A rate and a burst of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Packets or bytes per second. (Scripts state them per microsecond.)
    pub per_second: u64,
    /// The burst size in packets or bytes.
    pub burst: u64,
}

/// A cell of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The cell at an index of an array.
    Index(u64),
    /// The direct counter of the entry that was added with this id.
    Entry(String),
}

/// The expected value of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterCheck {
    /// True if bytes are compared, false for packets.
    pub bytes: bool,
    /// The comparison.
    pub comparison: Comparison,
    /// The number with which the count is compared.
    pub value: u64,
}

/// `== != < <= > >=`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparison {
    /// Returns whether the comparison is true for two values whose order is `order`.
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Ne => order.is_ne(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
        }
    }

    /// Returns the comparison operator as a script writes it.
    pub fn text(self) -> &'static str {
        match self {
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }
}

/// The match of a key field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A number. In a ternary or lpm field, its `*` digits match anything.
    Number(Number),
    /// `VALUE/LENGTH`
    Prefix(Number, u32),
    /// `VALUE&&&MASK` (as in the command line of the reference switch)
    Masked(Number, Number),
    /// `LOW->HIGH` (as in the command line of the reference switch)
    Range(Number, Number),
}

/// A number of any size, in which `*` stands for any digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// The radix: 2, 8, 10 or 16.
    pub radix: u8,
    /// The digits, most significant first; `None` for `*`.
    pub digits: Vec<Option<u8>>,
}

impl Number {
    /// Returns the number of bits that a digit stands for; `None` for decimal digits.
    pub fn bits_per_digit(&self) -> Option<u32> {
        match self.radix {
            2 => Some(1),
            8 => Some(3),
            16 => Some(4),
            _ => None,
        }
    }

    /// Returns whether some digit of the number is `*`.
    pub fn has_wildcard(&self) -> bool {
        self.digits.contains(&None)
    }

    /// Returns whether every digit of the number is `*`.
    pub fn is_anything(&self) -> bool {
        self.digits.iter().all(Option::is_none)
    }

    /// Returns whether all `*` digits stand after all other digits, so that the number is a prefix.
    pub fn is_prefix(&self) -> bool {
        let behind = self.digits.iter().skip_while(|d| d.is_some());
        behind.into_iter().all(Option::is_none)
    }

    /// Returns the value in `width` bits, with each `*` digit as zero; `None` if it does not fit into `width` bits.
    pub fn to_bits(&self, width: u32) -> Option<Bits> {
        let mut limbs: Vec<u64> = Vec::new();
        for digit in &self.digits {
            let mut carry = u64::from(digit.unwrap_or(0));
            for limb in &mut limbs {
                let sum = u128::from(*limb) * u128::from(self.radix) + u128::from(carry);
                (*limb, carry) = (sum as u64, (sum >> 64) as u64);
            }
            if carry != 0 {
                limbs.push(carry);
            }
            let bits =
                limbs.len() * 64 - limbs.last().map_or(0, |top| top.leading_zeros() as usize);
            if bits > width as usize {
                return None;
            }
        }
        Some(Bits::from_limbs(width, &limbs))
    }

    /// Returns the value; `None` if it exceeds 64 bits or contains a `*` digit.
    pub fn to_u64(&self) -> Option<u64> {
        if self.has_wildcard() {
            return None;
        }
        self.to_bits(64)?.to_u64()
    }

    /// Returns a mask of `width` bits: ones for each digit given, zeros for each `*` digit and for higher
    /// bits without a digit. All ones for a decimal number.
    pub fn mask(&self, width: u32) -> Bits {
        let Some(per_digit) = self.bits_per_digit() else {
            return Bits::ones(width);
        };
        let mut limbs = vec![0u64; width.div_ceil(64) as usize];
        for (digit, low) in (self.digits.iter().rev()).zip((0..width).step_by(per_digit as usize)) {
            for bit in (low..width.min(low + per_digit)).filter(|_| digit.is_some()) {
                limbs[(bit / 64) as usize] |= 1 << (bit % 64);
            }
        }
        Bits::from_limbs(width, &limbs)
    }
}

/// The expected contents of an outgoing packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketPattern {
    /// The hexadecimal digits; `None` stands for any digit.
    pub nibbles: Vec<Option<u8>>,
    /// True if the packet must end after these digits; otherwise more may follow.
    pub exact: bool,
}

impl PacketPattern {
    /// Makes a pattern that matches only the bytes `packet`.
    pub fn of(packet: &[u8]) -> PacketPattern {
        let nibbles = packet.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        PacketPattern {
            nibbles: nibbles.map(Some).collect(),
            exact: true,
        }
    }

    /// Returns whether `packet` matches the pattern. Further bytes may follow those of a pattern that is not exact.
    pub fn matches(&self, packet: &[u8]) -> bool {
        let nibble = |i: usize| {
            let byte = packet.get(i / 2)?;
            Some(if i.is_multiple_of(2) {
                byte >> 4
            } else {
                byte & 15
            })
        };
        let fits = self.nibbles.iter().enumerate().all(|(i, expected)| {
            nibble(i).is_some_and(|actual| expected.is_none_or(|e| e == actual))
        });
        fits && (!self.exact || packet.len() * 2 == self.nibbles.len())
    }
}

impl std::fmt::Display for PacketPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for nibble in &self.nibbles {
            match nibble {
                Some(value) => write!(f, "{value:x}")?,
                None => write!(f, "*")?,
            }
        }
        f.write_str(if self.exact { "$" } else { "..." })
    }
}
