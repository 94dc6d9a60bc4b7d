//! The text form of a program, both ways; it is also the compiled artifact, the device config of P4Runtime.
//!
//! For every verified program [`parse`] of [`print()`] is the program itself. [`parse`] accepts any input: it does not panic,
//! nests no deeper than [`crate::verify`] allows and allocates in proportion to a text of at most [`MAX_TEXT_BYTES`].
//! It knows only syntax; whether ids, widths and places make sense is for [`crate::verify::verify`].
//!
//! # Lexical structure
//!
//! White space, line breaks included, separates tokens and means nothing else; `;` begins a comment to the end of the line. The
//! printer writes one item or statement per line.
//!
//! ```text
//! number   decimal digits
//! bits     WIDTH w DECIMAL | WIDTH w 0x HEX     8w1, 128w0xfe80...; must fit; decimal up to 64 bits
//! string   "..." with \" \\ \n \r \t \u{HEX}
//! %N       slot          hN  header       aN  action       tN  table         rN  register     cN  counter
//! mN       meter         dN  digest       vN  value set    lN  field list    sN  state        bN  label
//! pN       action profile
//! ```
//!
//! # Grammar
//!
//! `x*` is any number of x, `x,*` likewise with commas between, `[x]` is optional. Items of a kind are numbered from 0 in order.
//!
//! ```text
//! program    = "holdfast_ir" 1
//!              "program" string
//!              file* slot* metadata error* header* register* counter* meter* digest* value_set* controller_header*
//!              action_profile* field_list*
//!              action* table* state* (name sN)* control*      the starts of parsers but the first, and all controls
//! file       = "file" number string
//! slot       = "slot" %N string ":" width
//! metadata   = keyword "{" (name "=" %N)* "}"           what crate::architecture declares, in its order; v1model's keyword is "standard"
//! error      = "error" number string
//! header     = "header" hN string "valid" %N "{" field* "}"
//! field      = %N ["length" %N]
//! register   = "register" rN string "id" number ":" width "size" number ["port_state"]
//! counter    = "counter" cN string "id" number ("packets" | "bytes" | "both") size
//! meter      = "meter" mN string "id" number ("packets" | "bytes") size
//! size       = "size" number | "direct"
//! digest     = "digest" dN string "id" number "(" width,* ")"
//! value_set  = "value_set" vN string "id" number "(" width,* ")" "size" number
//! controller_header = "controller_header" kN string "id" number "(" (number ":" width),* ")"
//! action_profile = "action_profile" pN string "id" number "size" number
//!                  ["selector" algorithm ":" width "max_group_size" number ["sum_of_members"]]
//! field_list = "field_list" lN "(" %N,* ")"
//! action     = "action" aN string "id" number "(" param,* ")" body
//! param      = %N string "id" number
//! table      = "table" tN string "id" number "{"
//!                key* table_action* "default" call ["const_default_action"] entry* ["const_entries"] "size" number
//!                ["direct_counter" cN] ["direct_meter" mN] ["implementation" pN]
//!                ["support_timeout"] ["hidden"] "}"
//! key        = "key" string "id" number ":" width kind
//! kind       = "exact" | "lpm" | "ternary" | "range" | "optional" | "selector"
//! table_action = "action" aN ["table_only" | "default_only"]
//! call       = aN "(" bits,* ")"
//! entry      = "entry" "(" match,* ")" ["priority" ["-"] number] call ["const"]
//! match      = "_" | bits | bits "/" number | bits "&" bits | bits ".." bits
//! state      = "state" sN string [loc] "{" statement* transition "}"
//! transition = "goto" target | "select" "(" expr,* ")" "{" ("case" "(" set,* ")" target)* "}"
//! target     = sN | "accept" | "reject"
//! set        = "_" | bits "&" bits | bits ".." bits | vN
//! control    = "control" name body      what crate::architecture declares, in its order; an empty deparser in front of others is left out
//! body       = "{" statement* "}"
//! loc        = "@" number ":" number    file and line; left out for 0:0
//!
//! statement  = "assign" %N "=" expr [loc]
//!            | ("set_valid" | "set_invalid" | "emit") hN [loc]
//!            | "if" expr [loc] body ["else" body]
//!            | "switch" expr [loc] "{" ("case" bits,* body)* ["default" body] "}"
//!            | ("block" | "loop") bN [loc] body
//!            | "break" bN [loc]
//!            | "exit" [loc]
//!            | "apply" tN "(" expr,* ")" ["hit" %N] ["action_run" %N] [loc]
//!            | "register_read" %N "=" rN "[" expr "]" [loc]
//!            | "register_write" rN "[" expr "]" "=" expr [loc]
//!            | "count" cN "[" expr "]" [loc]
//!            | "meter_execute" %N "=" mN "[" expr "]" [loc]
//!            | "direct_meter_read" %N "=" mN [loc]
//!            | "hash" %N "=" algorithm "(" expr,* ")" ["payload"] [loc]
//!            | "random" %N "=" "(" expr "," expr ")" [loc]
//!            | "clone" ("i2e" | "e2e") expr ["preserve" lN] [loc]
//!            | ("resubmit" | "recirculate") ["preserve" lN] [loc]
//!            | ("truncate" | "assert" | "advance" | "reject") expr [loc]
//!            | "digest" dN "(" expr,* ")" [loc]
//!            | "log" string "(" expr,* ")" [loc]
//!            | "extract" hN ["length" expr] [loc]
//!            | "lookahead" %N "at" number [loc]
//! algorithm  = "crc32" | "crc16" | "identity" | "csum16" | "xor16"
//!
//! expr       = bits | %N | "packet_length"
//!            | ("not" | "neg") "(" expr ")"
//!            | binary "(" expr "," expr ")"
//!            | "slice" "(" expr "," high "," low ")"
//!            | "concat" "(" expr "," expr ")"
//!            | ("zext" | "sext") "(" expr "," width ")"
//!            | "mux" "(" expr "," expr "," expr ")"
//! binary     = "add" | "sub" | "mul" | "div" | "mod" | "and" | "or" | "xor" | "shl" | "shr" | "sar" | "add_sat"
//!            | "sub_sat" | "sadd_sat" | "ssub_sat" | "eq" | "ne" | "ult" | "ule" | "slt" | "sle"
//! ```

mod lexer;
mod parser;
mod parser_body;
#[cfg(any(test, feature = "arbitrary"))]
mod preamble;
mod printer;
#[cfg(test)]
mod tests;

pub use parser::{ParseError, parse};
#[cfg(any(test, feature = "arbitrary"))]
pub use preamble::preamble;
pub use printer::print;

use crate::{BinaryOp, CounterUnit, HashAlgorithm, UnaryOp};

/// The version of the text form that this build reads and writes.
pub const VERSION: u32 = 2;

/// The longest text in bytes that is parsed.
pub const MAX_TEXT_BYTES: usize = 1 << 25;

/// Words for the values of an enumeration, for both directions.
type Words<T> = [(&'static str, T)];

const UNARY: &Words<UnaryOp> = &[("not", UnaryOp::Not), ("neg", UnaryOp::Neg)];

const BINARY: &Words<BinaryOp> = &[
    ("add", BinaryOp::Add),
    ("sub", BinaryOp::Sub),
    ("mul", BinaryOp::Mul),
    ("div", BinaryOp::Div),
    ("mod", BinaryOp::Mod),
    ("and", BinaryOp::And),
    ("or", BinaryOp::Or),
    ("xor", BinaryOp::Xor),
    ("shl", BinaryOp::Shl),
    ("shr", BinaryOp::Shr),
    ("sar", BinaryOp::Sar),
    ("add_sat", BinaryOp::AddSat),
    ("sub_sat", BinaryOp::SubSat),
    ("sadd_sat", BinaryOp::SAddSat),
    ("ssub_sat", BinaryOp::SSubSat),
    ("eq", BinaryOp::Eq),
    ("ne", BinaryOp::Ne),
    ("ult", BinaryOp::Ult),
    ("ule", BinaryOp::Ule),
    ("slt", BinaryOp::Slt),
    ("sle", BinaryOp::Sle),
];

const COUNTER_UNITS: &Words<CounterUnit> = &[
    ("packets", CounterUnit::Packets),
    ("bytes", CounterUnit::Bytes),
    ("both", CounterUnit::Both),
];

const HASHES: &Words<HashAlgorithm> = &[
    ("crc32", HashAlgorithm::Crc32),
    ("crc16", HashAlgorithm::Crc16),
    ("identity", HashAlgorithm::Identity),
    ("csum16", HashAlgorithm::Csum16),
    ("xor16", HashAlgorithm::Xor16),
];

fn word_of<T: PartialEq>(words: &Words<T>, value: T) -> &'static str {
    let found = words.iter().find(|(_, v)| *v == value);
    found.expect("every value has a word").0
}

fn value_of<T: Copy>(words: &Words<T>, word: &str) -> Option<T> {
    words.iter().find(|(w, _)| *w == word).map(|(_, v)| *v)
}
