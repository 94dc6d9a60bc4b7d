//! The common beginning of programs that tests write by hand.

use super::print;
use crate::architecture;
use crate::{Program, Slot};

/// Returns the text form of a program up to its first header: a file named after the program, the slots of
/// the metadata of v1model, the first architecture, as `%0` to `%15` in the order of its include file, then
/// `slots` with their names and widths in bits, and the errors of core.p4.
pub fn preamble<N: Into<String>>(name: &str, slots: impl IntoIterator<Item = (N, u32)>) -> String {
    let mut program = Program::empty(name, architecture::ALL[0]);
    program.files.push(format!("{name}.p4"));
    let slot = |(name, width): (N, u32)| Slot {
        name: name.into(),
        width,
    };
    program.slots.extend(slots.into_iter().map(slot));
    let mut text = print(&program);
    let controls = text
        .find("control verify_checksum")
        .expect("every program has its controls");
    text.truncate(controls);
    text
}
