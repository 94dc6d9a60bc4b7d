//! Parsers: the states of which they consist.

use super::{Expr, Loc, StateId, Stmt, ValueSetId};
use crate::Bits;

/// A parser state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its name in the source.
    pub name: String,
    /// Its statements before the transition.
    pub body: Vec<Stmt>,
    /// Its transition.
    pub transition: Transition,
    /// Source position.
    pub loc: Loc,
}

/// The next state of a parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Another state.
    State(StateId),
    /// Parsing succeeded.
    Accept,
    /// Parsing failed; the parser error keeps its value. The pipeline goes on after the parser.
    Reject,
}

/// The end of a parser state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Unconditional.
    Goto(Target),
    /// To the first case all of whose matches hold. If none does, the parser error becomes NoMatch (value 2),
    /// and the packet is rejected.
    Select {
        /// Key expressions.
        keys: Vec<Expr>,
        /// Cases in order.
        cases: Vec<SelectCase>,
    },
}

/// A case of a select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectCase {
    /// One match per key, or a single [`KeySet::ValueSet`] that covers all keys.
    pub matches: Vec<KeySet>,
    /// The next state.
    pub target: Target,
}

/// The set in which a key of a select must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySet {
    /// Anything.
    Any,
    /// `key & mask == value`.
    Mask {
        /// Value, zero outside the mask.
        value: Bits,
        /// Mask.
        mask: Bits,
    },
    /// `low <= key <= high`, unsigned.
    Range {
        /// Lowest.
        low: Bits,
        /// Highest.
        high: Bits,
    },
    /// A member of the value set.
    ValueSet(ValueSetId),
}

/// The values of errors that the language itself raises, in the order of core.p4.
pub mod core_error {
    /// `PacketTooShort`
    pub const PACKET_TOO_SHORT: u64 = 1;
    /// `NoMatch`
    pub const NO_MATCH: u64 = 2;
    /// `HeaderTooShort`
    pub const HEADER_TOO_SHORT: u64 = 4;
    /// `ParserInvalidArgument`
    pub const PARSER_INVALID_ARGUMENT: u64 = 6;
}
