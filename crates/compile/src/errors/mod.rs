//! Every message that the checker and the lowering can give, one constructor function each ([`syntax::messages`]).
//!
//! Codes from E1000 and W1000; each belongs to exactly one function. `tests/p4/reject/semantic` has a program for each
//! with the text it must give.

mod bodies;
mod calls;
mod names;
mod stateful;
mod tables;
mod target;
mod types;
mod values;

pub(crate) use bodies::*;
pub(crate) use calls::*;
pub(crate) use names::*;
pub(crate) use stateful::*;
pub(crate) use tables::*;
pub(crate) use target::*;
pub(crate) use types::*;
pub(crate) use values::*;

/// Returns a name in backquotes; the word "this", which stands for something without a name, is returned unchanged.
fn quoted(name: &str) -> String {
    match name {
        "this" => name.to_string(),
        name => format!("`{name}`"),
    }
}

fn plural(n: usize, noun: &str) -> String {
    match n {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}
