//! Compares our executors with the captures of another switch.
//!
//! A case is a program `NAME.p4`, optional commands `NAME.stf` (entries, groups, sessions of the other switch before the
//! packets), and a directory `NAME` with a capture per port and direction, with the reference switch's names: `XN_in.pcap` is the input
//! of port N, `XN_out.pcap` its output; X is any word. [`run_case`] sends the input in the order of the times and expects the output, in order at
//! each port; a port without an output file must send nothing. It does not start the other switch, and uses times only for their order.

use compile::Options;
use std::io;
use std::path::{Path, PathBuf};
use stf::parse;
use stf::script::{Command, Line, PacketPattern, Script};
use stf::suite::{TestResult, run_script};
use wire::pcap::Reader;

/// Returns the test cases in a directory, sorted by name: the programs `NAME.p4` that have a directory
/// `NAME` with captures.
pub fn cases(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "p4") && path.with_extension("").is_dir() {
            cases.push(path);
        }
    }
    cases.sort();
    Ok(cases)
}

/// Runs a test case on both executors.
pub fn run_case(program: &Path, options: &Options) -> TestResult {
    run_script(program, options, || script(program))
}

/// The direction of a capture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

/// Makes a script of the commands of a test case, its incoming packets in the order of their times, and the
/// packets that the other switch sent as the expected ones.
fn script(program: &Path) -> Result<Script, String> {
    let mut script = commands(&program.with_extension("stf"))?;
    let captures = program.with_extension("");
    let unreadable = |e: io::Error| format!("{}: {e}", captures.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&captures).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|e| e == "pcap") {
            let (port, direction) = port_of(&path).ok_or_else(|| {
                format!(
                    "{}: a capture is named after its port and direction, as pcap1_in.pcap",
                    path.display()
                )
            })?;
            files.push((port, direction, path));
        }
    }
    files.sort_by(|a, b| (a.0, &a.2).cmp(&(b.0, &b.2)));
    let (mut sent, mut expected) = (Vec::new(), Vec::new());
    for (port, direction, path) in files {
        for (time_ns, frame) in frames(&path)? {
            match direction {
                Direction::In => sent.push((time_ns, Command::Packet { port, data: frame })),
                Direction::Out => {
                    let pattern = PacketPattern::of(&frame);
                    expected.push(Command::Expect { port, pattern });
                }
            }
        }
    }
    if sent.is_empty() {
        return Err(format!(
            "{}: no packet in any capture of what came in",
            captures.display()
        ));
    }
    // Those of the same time stay in the order of their ports.
    sent.sort_by_key(|(time_ns, _)| *time_ns);
    let commands = sent.into_iter().map(|(_, packet)| packet).chain(expected);
    // They stand in no line.
    let lines = commands.map(|command| Line { number: 0, command });
    script.lines.extend(lines);
    Ok(script)
}

/// Reads the commands that are executed before the packets; no commands if the file does not exist.
fn commands(path: &Path) -> Result<Script, String> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(format!("{}: {e}", path.display())),
    };
    let (script, problems) = parse(&String::from_utf8_lossy(&text));
    if let Some(problem) = problems.first() {
        return Err(problem.to_string());
    }
    for line in &script.lines {
        if matches!(
            line.command,
            Command::Packet { .. } | Command::Expect { .. }
        ) {
            let number = line.number;
            return Err(format!(
                "line {number}: packets of a case with captures are in the captures, commands in the script"
            ));
        }
    }
    Ok(script)
}

/// Returns the port and the direction that a capture's file name gives, as `NAME3_in.pcap` or
/// `NAME3_out.pcap`; `None` for any other name.
fn port_of(path: &Path) -> Option<(u32, Direction)> {
    let stem = path.file_stem()?.to_str()?;
    let (name, direction) = match stem.rsplit_once('_')? {
        (name, "in") => (name, Direction::In),
        (name, "out") => (name, Direction::Out),
        _ => return None,
    };
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let port = name[word.len()..].parse().ok()?;
    Some((port, direction))
}

/// Reads the frames of a capture file, each with its time in nanoseconds. `Err` if the file cannot be read,
/// or if a frame was not captured as a whole.
fn frames(path: &Path) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let wrong = |what: String| format!("{}: {what}", path.display());
    let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
    let reader = Reader::new(&bytes).map_err(|e| wrong(e.to_string()))?;
    let mut frames = Vec::new();
    for (i, record) in reader.enumerate() {
        let record = record.map_err(|e| wrong(e.to_string()))?;
        if record.frame.len() != record.original_len as usize {
            let (stored, whole) = (record.frame.len(), record.original_len);
            return Err(wrong(format!(
                "packet {}: {stored} of {whole} bytes were stored; capture without a limit",
                i + 1
            )));
        }
        frames.push((record.time_ns, record.frame.to_vec()));
    }
    Ok(frames)
}
