//! Fuzz targets. A finding is a panic: the code under test must not panic on any input. If two methods must give the same result,
//! the target panics when they differ.
//!
//! The targets know no fuzzer. `fuzz_targets/` passes them to libFuzzer. `bin/mutate` runs them in a loop of its own, with the
//! changes of [`mutation`] and the inputs of [`seeds`].
#![forbid(unsafe_code)]

pub mod mutation;
pub mod p4info;
pub mod seeds;

use compile::{Options, Outcome};
use conformance::choices::random_bytes;
use conformance::history::Dialect;
use conformance::{Subject, apps, generated, history};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::OnceLock;
use syntax::MemoryLoader;

/// The longest input, in bytes: enough for everything, and no time is lost on giants.
pub const MAX_INPUT: usize = 1 << 15;

/// The stage that an input reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The input was refused by the preprocessor or the parser.
    Refused,
    /// The input has a syntax tree.
    Parsed,
    /// The input's names and types are right (an artifact: the verifier accepts it).
    Checked,
    /// The input is a program.
    Compiled,
    /// Packets ran through the program on both executors.
    Ran,
}

impl Stage {
    /// All stages, from the first.
    pub const ALL: [Stage; 5] = [
        Stage::Refused,
        Stage::Parsed,
        Stage::Checked,
        Stage::Compiled,
        Stage::Ran,
    ];
}

/// The behaviour of an input, so that a fuzzer can detect new behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reached {
    /// The stage that the input reached.
    pub stage: Stage,
    /// A hash of its behaviour: inputs with the same number behaved alike, as far as can be seen from outside.
    pub signature: u64,
}

/// A function that runs an input.
pub type Target = fn(&[u8]) -> Reached;

/// The targets by name.
pub const TARGETS: [(&str, Target); 7] = [
    ("parse", parse),
    ("compile", compile),
    ("artifact", artifact),
    ("packet", packet),
    ("capture", capture),
    ("report", report),
    ("generated", generated_program),
];

/// The name that inputs have for the compiler.
const INPUT: &str = "input.p4";

fn reached(stage: Stage, what: impl Hash) -> Reached {
    let mut hasher = DefaultHasher::new();
    (stage, what).hash(&mut hasher);
    Reached {
        stage,
        signature: hasher.finish(),
    }
}

/// Builds a loader of any bytes as a program that can include what is built in and nothing else.
fn loader(text: &str) -> MemoryLoader {
    let mut loader = MemoryLoader::new().file(INPUT, text);
    for (name, text) in seeds::includes() {
        loader = loader.file(name, text);
    }
    loader
}

/// Returns the kinds of messages; how often each occurs matters only up to a few.
fn codes(diagnostics: &[syntax::diagnostics::Diagnostic]) -> Vec<&'static str> {
    let mut codes: Vec<&str> = diagnostics.iter().map(|d| d.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Runs the preprocessor and the parser, and checks that the diagnostics can be shown.
pub fn parse(data: &[u8]) -> Reached {
    let text = String::from_utf8_lossy(data);
    let parsed = syntax::parse(Path::new(INPUT), &loader(&text), &[]);
    let shown = parsed.render();
    assert_eq!(shown.is_empty(), parsed.diagnostics.is_empty());
    let stage = match parsed.has_errors() {
        true => Stage::Refused,
        false => Stage::Parsed,
    };
    let size = magnitude(parsed.program.decls.len());
    reached(stage, (codes(&parsed.diagnostics), size))
}

/// Returns how large a count is, roughly: its number of bits.
fn magnitude(count: usize) -> u32 {
    count.checked_ilog2().map_or(0, |log| log + 1)
}

/// Runs all of the compiler, and checks that what it accepts is a valid program, that its text form means the same, that its P4Info
/// can be read, and that both executors run it alike.
pub fn compile(data: &[u8]) -> Reached {
    let text = String::from_utf8_lossy(data);
    let options = Options::default();
    let outcome = compile::compile_with(Path::new(INPUT), &loader(&text), &options);
    let library = outcome.diagnostics.iter().any(|d| d.code == "W1130");
    assert_eq!(
        outcome.accepted() && !library,
        outcome.compiled.is_some(),
        "{}",
        outcome.render()
    );
    let codes = codes(&outcome.diagnostics);
    let Some(compiled) = &outcome.compiled else {
        return reached(refusal(&outcome), codes);
    };
    let told = compiled.p4info.to_text();
    if let Err(why) = p4info::check(&told) {
        panic!("P4Info that cannot be read: {why}");
    }
    let text = ir::text::print(&compiled.program);
    let again = ir::text::parse(&text).expect("the text form of a program can be read");
    assert!(
        again == compiled.program,
        "the text form means something else"
    );
    let shape = shape(&compiled.program);
    if is_giant(&compiled.program) {
        return reached(Stage::Compiled, (codes, shape));
    }
    let Ok(subject) = Subject::new(again) else {
        return reached(Stage::Compiled, (codes, shape));
    };
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    let bytes = random_bytes(hasher.finish(), 300);
    match history::run_with(&subject, &bytes, &Dialect::of(generated::frame)) {
        Ok(_) => reached(Stage::Ran, (codes, shape)),
        Err(difference) => panic!("{difference}"),
    }
}

/// Returns how far a program came that is refused.
fn refusal(outcome: &Outcome) -> Stage {
    // The codes of syntax/errors.rs start with E0.
    let mut errors = outcome.diagnostics.iter().filter(|d| d.is_error());
    match outcome.checked {
        true => Stage::Checked,
        false if errors.any(|d| d.code.starts_with("E0")) => Stage::Refused,
        false => Stage::Parsed,
    }
}

/// Returns the contents of a program, by magnitude.
fn shape(program: &ir::Program) -> [u32; 8] {
    let sizes = [
        program.slots.len(),
        program.headers.len(),
        program.tables.len(),
        program.actions.len(),
        program.states.len(),
        program.main_control(ir::Pipeline::INGRESS).len(),
        program.main_control(ir::Pipeline::EGRESS).len(),
        program.registers.len() + program.counters.len() + program.meters.len(),
    ];
    sizes.map(magnitude)
}

/// Reads a capture file of either format, and checks that its packets lie in it and that a reader ends.
pub fn capture(data: &[u8]) -> Reached {
    let Ok(reader) = wire::capture::Reader::new(data) else {
        return reached(Stage::Refused, wire::capture::is_capture(data));
    };
    let mut stored = 0;
    let mut packets = 0;
    for packet in reader {
        let Ok(packet) = packet else {
            return reached(Stage::Parsed, magnitude(packets));
        };
        packets += 1;
        stored += packet.record.frame.len();
        assert!(stored <= data.len(), "packets hold more than the file");
    }
    reached(Stage::Ran, (magnitude(packets), magnitude(stored)))
}

/// Decodes a telemetry report, whole and in halves, for a collector with little room; checks that its values lie in it and that
/// everything is counted.
pub fn report(data: &[u8]) -> Reached {
    let indicators = wire::report::Indicators {
        dscp: 0x17,
        dscp_mask: 0x3F,
        udp_port: 54321,
    };
    let limits = telemetry::Limits {
        flows: 2,
        hops: 4,
        reporters: 1,
        rows: usize::MAX,
    };
    let mut collector = telemetry::Collector::new(limits, indicators, true);
    let (first, second) = data.split_at(data.len() / 2);
    let (mut reports, mut hops) = (0, 0);
    for payload in [data, first, second, data] {
        collector.take(0, payload);
        if let Ok(found) = wire::report::decode(payload, &indicators) {
            reports += found.len();
            hops += found.iter().map(|it| it.path().count()).sum::<usize>();
        }
    }
    assert_eq!(
        (collector.reports, collector.rows()),
        (reports as u64, hops)
    );
    assert!(collector.hops().len() <= 4 && collector.flows().len() <= 2);
    assert_eq!(collector.take_rows().len(), hops);
    let thesis = wire::report::decode_thesis(data).map(|(_, hops)| magnitude(hops.len()));
    let found = match wire::report::decode(data, &indicators) {
        Err(rule) => return reached(Stage::Refused, (rule as usize, thesis.is_ok())),
        Ok(found) => found,
    };
    let mut shapes = Vec::new();
    let mut stage = Stage::Parsed;
    for it in found.iter().take(4) {
        let embedded = it.packet.embedded.as_ref();
        if let Some(embedded) = embedded {
            let stack = embedded.hops().count() * 4;
            assert!(stack + embedded.source_only.len() <= data.len());
        }
        stage = stage.max(match (it.packet.flow, embedded) {
            (_, Some(_)) => Stage::Ran,
            (Some(_), None) => Stage::Checked,
            (None, None) => Stage::Parsed,
        });
        let flags = [
            it.dropped,
            it.congested,
            it.tracked,
            it.hop.latency.is_some(),
        ];
        let packet = it
            .packet
            .flow
            .map(|key| (key.source.is_ipv4(), key.protocol));
        let stack = embedded.map(|it| {
            (
                it.cut,
                it.source_only.is_empty(),
                magnitude(it.hops().count()),
            )
        });
        shapes.push((flags, packet, stack));
    }
    reached(stage, (shapes, magnitude(found.len())))
}

/// Parses the text form of a program, as it comes in a device configuration; checks that both executors run it alike if it is
/// valid.
pub fn artifact(data: &[u8]) -> Reached {
    let text = String::from_utf8_lossy(data);
    // The packets come after the program.
    let (text, packets) = text.split_once("\n===\n").unwrap_or((&text, ""));
    let program = match ir::text::parse(text) {
        Ok(program) => program,
        Err(error) => {
            let message = error.to_string();
            // Without the numbers and names in it.
            let kind: String = message.chars().filter(|c| c.is_ascii_lowercase()).collect();
            return reached(Stage::Refused, kind.get(..12).map(str::to_string));
        }
    };
    let shape = shape(&program);
    if let Err(violations) = ir::verify::verify(&program) {
        return reached(Stage::Parsed, (shape, magnitude(violations.len())));
    }
    if is_giant(&program) {
        return reached(Stage::Checked, shape);
    }
    let Ok(subject) = Subject::new(program) else {
        return reached(Stage::Checked, shape);
    };
    let packets = if packets.is_empty() {
        data
    } else {
        packets.as_bytes()
    };
    match history::run_packets(&subject, packets) {
        Ok(_) => reached(Stage::Ran, shape),
        Err(difference) => panic!("{difference}"),
    }
}

/// Returns whether a program is valid, but not worth the time and memory: that a switch refuses to be as large as it is told is
/// tested elsewhere.
fn is_giant(program: &ir::Program) -> bool {
    let bits: u64 = program.slots.iter().map(|s| u64::from(s.width)).sum();
    let cells = program
        .registers
        .iter()
        .map(|r| r.size)
        .chain(program.counters.iter().filter_map(|c| c.size))
        .chain(program.meters.iter().filter_map(|m| m.size));
    bits > 1 << 16 || cells.fold(0, u64::saturating_add) > 1 << 16
}

/// Runs the applications under packets and control operations, and checks that both executors agree.
pub fn packet(data: &[u8]) -> Reached {
    static SUBJECTS: OnceLock<Vec<(Subject, Dialect)>> = OnceLock::new();
    let subjects = SUBJECTS.get_or_init(|| {
        let subject = |application: apps::Application| {
            let subject = application.subject();
            let subject = subject.unwrap_or_else(|why| panic!("{why}"));
            (subject, application.dialect)
        };
        apps::all().into_iter().map(subject).collect()
    });
    let Some((&first, rest)) = data.split_first() else {
        return reached(Stage::Ran, 0);
    };
    let subject = usize::from(first) % subjects.len();
    let (program, dialect) = &subjects[subject];
    match history::run_with(program, rest, dialect) {
        Ok(statistics) => reached(Stage::Ran, (subject, outcome(&statistics))),
        Err(difference) => panic!("{difference}"),
    }
}

/// Returns the result of a history, by magnitude.
fn outcome(statistics: &conformance::Statistics) -> Vec<u32> {
    let counts = [
        statistics.sent,
        statistics.dropped,
        statistics.accepted,
        statistics.refused,
    ];
    let counts = counts.iter().chain(&statistics.counted);
    counts.map(|count| magnitude(*count as usize)).collect()
}

/// The number of attempts to make a generated program that finds something smaller.
const ATTEMPTS: u32 = 400;

/// Runs a program made of the bytes, with a history of packets and control operations.
pub fn generated_program(data: &[u8]) -> Reached {
    match generated::run(data) {
        Ok(statistics) => {
            let lines = magnitude(generated::source(data).lines().count());
            reached(Stage::Ran, (lines, outcome(&statistics)))
        }
        Err(finding) => {
            let smaller = generated::minimise(data, &finding, ATTEMPTS);
            let finding = generated::run(&smaller).err().unwrap_or(finding);
            panic!("{finding}\nthe case: {smaller:02x?}");
        }
    }
}
