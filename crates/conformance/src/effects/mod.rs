//! A reference evaluator for effects in expressions and calls, and random programs that it judges.
//!
//! A program of [`tree`] is written as P4 ([`text`]) and evaluated by walking the tree ([`evaluate`]), which is independent of the
//! compiler. The packets that leave must be the same on both executors, and from the program compiled with every argument copied.
//!
//! It knows sections "Calling convention" and "Expression evaluation order" of the specification, for functions, actions, controls,
//! parsers and tables. It does not know the rest of the language, which [`crate::generate`] covers.

mod choose;
mod evaluate;
mod text;
mod tree;

use crate::choices::random_bytes;
use compile::Options;
use engine::{Executor, Interpreter, Packet, Switch, SwitchConfig, Time};
use ir::Program;
use std::sync::Arc;

/// The number of bytes of a packet, all of which belong to headers.
pub const PACKET_BYTES: usize = 18;

/// The number of packets on which each program runs.
const PACKETS: u64 = 6;

/// The most runs in which a failing case is made smaller.
const ATTEMPTS: u32 = 400;

/// Returns the bytes of the test case with the number `seed`; each case is a program.
pub fn case(seed: u64) -> Vec<u8> {
    random_bytes(seed, [200, 500, 1500][(seed % 3) as usize])
}

/// Returns the P4 program of a case.
pub fn source(case: &[u8]) -> String {
    text::program(&choose::program(case))
}

/// Runs the program of a case on both executors, and compares the packets that leave with those of the reference
/// evaluator. `Err` holds the program, the packet, and the bytes that left and should have left.
pub fn run(case: &[u8]) -> Result<(), String> {
    let program = choose::program(case);
    let source = text::program(&program);
    judge(&source, |packet| evaluate::run(&program, packet))
}

/// Compares the packets that leave a program with those that `expected` returns: on the interpreter, as machine code,
/// and on the interpreter with every argument copied. `Err` describes the first difference.
fn judge(source: &str, expected: impl Fn(&[u8]) -> Vec<u8>) -> Result<(), String> {
    let of = |what: &str| format!("{what}\n---- the program\n{source}----");
    let compiled = |copy_arguments| compiled(source, copy_arguments).map_err(|e| of(&e));
    let (plain, copied) = (Arc::new(compiled(false)?), Arc::new(compiled(true)?));
    let code = jit::compile(plain.clone()).map_err(|e| of(&e.to_string()))?;
    let executors: [(&str, &Arc<Program>, Arc<dyn Executor>); 3] = [
        (
            "interpreter",
            &plain,
            Arc::new(Interpreter::new(plain.clone())),
        ),
        ("machine code", &plain, Arc::new(code)),
        (
            "interpreter, all arguments copied",
            &copied,
            Arc::new(Interpreter::new(copied.clone())),
        ),
    ];
    for (name, program, executor) in executors {
        let mut switch = Switch::new(program.clone(), executor, SwitchConfig::default());
        for number in 0..PACKETS {
            let packet = packet(number);
            let mut out = Vec::new();
            switch.receive(Time::ZERO, 0, Packet::new(&packet), &mut out);
            let left: Vec<Vec<u8>> = out.iter().map(|o| o.packet.bytes().to_vec()).collect();
            let right = expected(&packet);
            if left != [right.clone()] {
                return Err(of(&format!(
                    "{name}: for {packet:02x?}\n  leaves       {left:02x?}\n  should leave [{right:02x?}]"
                )));
            }
        }
    }
    Ok(())
}

fn compiled(source: &str, copy_arguments: bool) -> Result<Program, String> {
    let options = Options {
        copy_arguments,
        ..Options::default()
    };
    let outcome = compile::compile_text(source, "effects.p4", &options);
    match outcome.compiled {
        Some(compiled) => Ok(compiled.program),
        None => Err(outcome.render()),
    }
}

/// Returns a packet of mostly small bytes, which are often equal to each other and to the values of keys.
fn packet(number: u64) -> Vec<u8> {
    let bytes = random_bytes(number, PACKET_BYTES).into_iter();
    bytes
        .map(|byte| if byte < 200 { byte & 7 } else { byte })
        .collect()
}

/// Returns a smaller case that still fails, with its error message. Removes pieces of the case as long as it fails,
/// in at most [`ATTEMPTS`] runs.
pub fn minimise(case: &[u8], error: String) -> (Vec<u8>, String) {
    let mut left = ATTEMPTS;
    let mut best = (case.to_vec(), error);
    let mut length = case.len();
    while length > 0 {
        let mut at = 0;
        while at < best.0.len() && left > 0 {
            left -= 1;
            let end = (at + length).min(best.0.len());
            let mut shorter = best.0.clone();
            shorter.drain(at..end);
            let mut zeros = best.0.clone();
            zeros[at..end].fill(0);
            let smaller = [shorter, zeros].into_iter().filter(|c| *c != best.0);
            match smaller
                .into_iter()
                .find_map(|c| run(&c).err().map(|e| (c, e)))
            {
                Some(found) if found.1.len() <= best.1.len() => {
                    at = if found.0.len() < best.0.len() {
                        at
                    } else {
                        end
                    };
                    best = found;
                }
                _ => at = end,
            }
        }
        length /= 2;
    }
    best
}
