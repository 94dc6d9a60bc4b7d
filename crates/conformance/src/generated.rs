//! Generated programs through the whole chain: text, compiler, text form, machine code, and histories on both executors; and once more
//! with constants that the compiler cannot see and with every argument copied, neither of which must change anything.
//!
//! A *case* is bytes: the choices of the program and of its history. [`run`] gives what happened or a [`Finding`];
//! [`minimise`] makes a case smaller that still finds the same. It knows no expected results.

use crate::choices::{Choices, random_bytes};
use crate::generate::{self, Constants};
use crate::history::{self, Dialect, Statistics};
use crate::twin::Subject;
use compile::Options;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most bytes of a case that determine the program; the rest determines its history.
const MAX_PROGRAM_BYTES: usize = 4096;

/// What is wrong with a program, the compiler or an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The compiler refuses the program, although it should be well-typed.
    Refused,
    /// The compiler or an executor panicked.
    Panicked,
    /// The text form of the compiled program cannot be read, or has another meaning.
    TextForm,
    /// No machine code is made for the program.
    NoMachineCode,
    /// The two executors behave differently.
    Differs,
    /// The program behaves differently when the compiler cannot see the values of constants: they are folded wrongly.
    Folded,
    /// The program behaves differently when every argument is copied: an argument that changes during a call was not
    /// copied.
    NotCopied,
}

/// A fault that a case has revealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the fault.
    pub kind: Kind,
    /// The details.
    pub message: String,
    /// The source text of the program.
    pub source: String,
}

impl Finding {
    /// Returns whether another finding is probably the same fault: it has the same kind and, if the compiler refused
    /// the program, the same error code.
    fn is_like(&self, other: &Finding) -> bool {
        let code = |f: &Finding| f.message.split(':').next().map(str::to_string);
        self.kind == other.kind && (self.kind != Kind::Refused || code(self) == code(other))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}: {}", self.kind, self.message)?;
        write!(f, "---- the program\n{}----", self.source)
    }
}

/// Splits a case into the bytes that determine the program and those that determine the history of packets and
/// control operations.
fn split(case: &[u8]) -> (&[u8], &[u8]) {
    let [high, low, rest @ ..] = case else {
        return (&[], &[]);
    };
    let length = usize::from(u16::from_be_bytes([*high, *low])) % (MAX_PROGRAM_BYTES + 1);
    rest.split_at(length.min(rest.len()))
}

fn join(program: &[u8], history: &[u8]) -> Vec<u8> {
    let length = program.len().min(MAX_PROGRAM_BYTES) as u16;
    [&length.to_be_bytes(), program, history].concat()
}

/// Returns the bytes of the test case with the number `seed`: mostly a small program, sometimes a large one.
pub fn case(seed: u64) -> Vec<u8> {
    let mut random = random_bytes(seed, 4096 + 900).into_iter();
    let length = match random.next() {
        Some(0..=99) => 300,
        Some(100..=219) => 900,
        _ => 3000,
    };
    let program: Vec<u8> = random.by_ref().take(length).collect();
    let history: Vec<u8> = random.take(900).collect();
    join(&program, &history)
}

/// Returns the P4 program of a case.
pub fn source(case: &[u8]) -> String {
    generate::program(split(case).0, Constants::Plain)
}

/// Runs a case: compiles its program, and runs its history on both executors. Returns the history's counts. `Err`
/// holds the kind of fault, a message and the program.
pub fn run(case: &[u8]) -> Result<Statistics, Finding> {
    let source = source(case);
    let outcome = catch_unwind(AssertUnwindSafe(|| check(&source, case)));
    let checked = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err((Kind::Panicked, text.unwrap_or_default()))
    });
    checked.map_err(|(kind, message)| Finding {
        kind,
        message,
        source,
    })
}

fn check(source: &str, case: &[u8]) -> Result<Statistics, (Kind, String)> {
    let (program, history) = split(case);
    let plain = compiled(source, false)?;
    match ir::text::parse(&ir::text::print(&plain)) {
        Ok(again) if again == plain => {}
        Ok(_) => return Err((Kind::TextForm, "it means something else".into())),
        Err(error) => return Err((Kind::TextForm, error.to_string())),
    }
    let subject = Subject::new(plain).map_err(|e| (Kind::NoMachineCode, e.to_string()))?;
    let dialect = Dialect::of(frame);
    let statistics =
        history::run_with(&subject, history, &dialect).map_err(|why| (Kind::Differs, why))?;
    // Both at once, which is half the work; which of them it was is asked where there is a difference only.
    let hidden = generate::program(program, Constants::Hidden);
    let beside = |text: &str, copy_arguments, name: &str, kind| {
        let other = subject.beside(compiled(text, copy_arguments)?);
        let outcome = history::run_with(&other, history, &dialect);
        outcome.map_err(|why| (kind, why.replace("machine code", name)))
    };
    if let Err(found) = beside(&hidden, true, "not folded ", Kind::Folded) {
        beside(source, true, "copied      ", Kind::NotCopied)?;
        return Err(found);
    }
    Ok(statistics)
}

fn compiled(source: &str, copy_arguments: bool) -> Result<ir::Program, (Kind, String)> {
    let options = Options {
        copy_arguments,
        ..Options::default()
    };
    let outcome = compile::compile_text(source, "generated.p4", &options);
    match outcome.compiled {
        Some(compiled) => Ok(compiled.program),
        None => {
            let errors = outcome.diagnostics.iter().filter(|d| d.is_error());
            let texts: Vec<String> = errors.map(|d| d.render(&outcome.sources)).collect();
            Err((Kind::Refused, texts.concat()))
        }
    }
}

/// Generates a frame of mostly small bytes, so that small fields and few table entries often match. It uses
/// few choices, so that a case contains many packets.
pub fn frame(choices: &mut Choices<'_>, _from_controller: bool) -> Vec<u8> {
    let length = match choices.below(8) {
        7 => choices.below(256) as usize,
        length => 64 + 8 * length as usize,
    };
    let chosen = choices.below(12) as usize;
    let mut frame = choices.bytes(chosen);
    let seed = u64::from(choices.u16());
    let spread = |byte: u8| match byte {
        0..=159 => byte & 3,
        160..=170 => 0xff,
        byte => byte,
    };
    frame.extend(random_bytes(seed, length).into_iter().map(spread));
    frame.truncate(length);
    frame
}

/// Returns a smaller case that shows a fault like `finding`, which `case` shows. Makes at most `attempts` runs.
pub fn minimise(case: &[u8], finding: &Finding, attempts: u32) -> Vec<u8> {
    let (program, history) = split(case);
    let mut parts = [program.to_vec(), history.to_vec()];
    let mut left = attempts;
    loop {
        let before = parts.clone();
        for part in [1, 0] {
            let mut length = parts[part].len() / 2;
            while length > 0 && left > 0 {
                reduce(&mut parts, part, length, finding, &mut left);
                length /= 2;
            }
        }
        if parts == before || left == 0 {
            return join(&parts[0], &parts[1]);
        }
    }
}

/// Removes pieces of `length` bytes from one part of a case, or sets them to zero, wherever the case then still shows
/// the fault `finding`. Each run decrements `left`; stops when it is 0.
fn reduce(parts: &mut [Vec<u8>; 2], part: usize, length: usize, finding: &Finding, left: &mut u32) {
    let mut at = 0;
    while at < parts[part].len() && *left > 0 {
        let end = (at + length).min(parts[part].len());
        let mut shorter = parts.clone();
        shorter[part].drain(at..end);
        let mut zeros = parts.clone();
        zeros[part][at..end].fill(0);
        let mut smaller = [shorter, zeros].into_iter().filter(|p| p != parts);
        let mut attempt = |p: &[Vec<u8>; 2]| {
            *left = left.saturating_sub(1);
            matches!(run(&join(&p[0], &p[1])), Err(found) if found.is_like(finding))
        };
        match smaller.find(|p| attempt(p)) {
            Some(found) => {
                let removed = found[part].len() < parts[part].len();
                *parts = found;
                at = if removed { at } else { end };
            }
            None => at = end,
        }
    }
}
