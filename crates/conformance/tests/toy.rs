//! A third architecture, with one pipeline and an extern of its own, which only this test has: what it takes is a file in each of
//! `ir::architecture`, `compile::lower` and `engine::architecture`, its include file, and its name in `ir::architectures`. All rooms,
//! verifier, text form and both executors included, take it as any other.

use compile::{Options, Outcome, compile_text};
use conformance::apps;
use engine::{DropReason, Executor, Interpreter, Packet, Switch, SwitchConfig, Time};
use ir::{Program, StmtKind};
use std::collections::BTreeMap;
use std::sync::Arc;

fn compile(text: &str) -> Outcome {
    let folder = apps::root().join("crates/conformance/tests/toy");
    let options = Options {
        include_dirs: vec![folder],
        ..Options::default()
    };
    compile_text(text, "program.p4", &options)
}

fn ones() -> Arc<Program> {
    let outcome = compile(include_str!("toy/ones.p4"));
    let rendered = outcome.render();
    Arc::new(outcome.compiled.expect(&rendered).program)
}

fn executors(program: &Arc<Program>) -> [Arc<dyn Executor>; 2] {
    let native = jit::compile(program.clone()).expect("there is code for this machine");
    [
        Arc::new(Interpreter::new(program.clone())),
        Arc::new(native),
    ]
}

/// A packet and its port, and what leaves at which port.
type Case<'a> = (u32, &'a [u8], Option<(u32, &'a [u8])>);

/// The ports and bytes that leave for each packet, and the counts of drops by reason.
type Run = (Vec<Vec<(u32, Vec<u8>)>>, BTreeMap<DropReason, u64>);

/// Returns the ports and bytes that leave for each of `packets`, and the counts of drops by reason.
fn run(program: &Arc<Program>, executor: Arc<dyn Executor>, packets: &[(u32, Vec<u8>)]) -> Run {
    let mut switch = Switch::new(program.clone(), executor, SwitchConfig::default());
    let mut results = Vec::new();
    for (i, (port, bytes)) in packets.iter().enumerate() {
        let mut out = Vec::new();
        let now = Time::from(i as u64 * 1_000_000);
        switch.receive(now, *port, Packet::new(bytes), &mut out);
        let sent = out.iter().map(|o| (o.port, o.packet.bytes().to_vec()));
        results.push(sent.collect());
    }
    (results, switch.drops())
}

#[test]
fn a_program_does_the_same_on_both_executors() {
    let program = ones();
    let cases: [Case<'_>; 6] = [
        // The number of ones says where.
        (0, &[0, 0b1011, 4, 5], Some((3, &[0, 0b1011, 4, 5]))),
        (0, &[0, 0xff], Some((8, &[0, 0xff]))),
        // A table says where.
        (0, &[2, 0xff, 1], Some((2, &[2, 0xff, 1]))),
        (0, &[1, 0xff], None),
        // A header goes, another changes: three ones, and port 5.
        (5, &[7, 1, 9, 0b111, 6], Some((1, &[9, 8, 6]))),
        // The packet is too short.
        (0, &[7, 1, 9], Some((3, &[7, 1, 9]))),
    ];
    let packets = cases.map(|(port, bytes, _)| (port, bytes.to_vec()));
    for executor in executors(&program) {
        let (results, drops) = run(&program, executor, &packets);
        for (result, (.., expected)) in results.iter().zip(&cases) {
            let expected: Vec<_> = expected.iter().map(|(p, b)| (*p, b.to_vec())).collect();
            assert_eq!(*result, expected);
        }
        assert_eq!(drops, BTreeMap::from([(DropReason::IngressDrop, 1)]));
    }
}

#[test]
fn its_text_form_goes_there_and_back() {
    let program = ones();
    let text = ir::text::print(&program);
    assert!(text.contains("toy {\n  arrival.port = %0"), "{text}");
    assert!(!text.contains("egress"), "{text}");
    let parsed = ir::text::parse(&text).expect("is a program");
    assert_eq!(parsed, *program);
    assert_eq!(ir::verify::verify(&parsed), Ok(()));
}

/// The extern of the toy has the name of one of v1model's: each means what its architecture says, and a program's own is refused.
#[test]
fn an_extern_means_what_its_own_architecture_says() {
    let hashes = |program: &Program| {
        let mut all = program.bodies().flat_map(ir::statements);
        all.any(|stmt| matches!(stmt.kind, StmtKind::Hash { .. }))
    };
    assert!(!hashes(&ones()));
    let own = include_str!("toy/ones.p4").replace(
        "header mark_t",
        "extern void mark_to_drop(inout departure_t departure);\n\nheader mark_t",
    );
    // Where it is not used, it does no harm.
    assert!(compile(&own).compiled.is_some());
    let used = own.replace("departure.port = 9;", "mark_to_drop(departure);");
    let outcome = compile(&used);
    assert!(outcome.compiled.is_none());
    let rendered = outcome.render();
    let hint = "v1model has an extern of this name, but this program is for toy";
    assert!(rendered.contains(hint), "{rendered}");
}

/// A function of the program's own with the name of an extern is that function.
#[test]
fn a_function_with_the_name_of_an_extern_is_a_function() {
    let own = include_str!("toy/ones.p4")
        .replace(
            "header mark_t",
            "bit<8> hash(in bit<8> a, in bit<8> b) { return a + b; }\n\nheader mark_t",
        )
        .replace("hash(headers.mark.value)", "hash(headers.mark.value, 8w1)");
    let outcome = compile(&own);
    let rendered = outcome.render();
    let program = Arc::new(outcome.compiled.expect(&rendered).program);
    let packets = [(0, vec![0, 5])];
    for executor in executors(&program) {
        let (results, _) = run(&program, executor, &packets);
        assert_eq!(results, [[(6, vec![0, 5])]]);
    }
}

/// Random programs of every architecture: both executors send and drop the same.
#[test]
fn random_programs_of_all_architectures_do_the_same_on_both_executors() {
    let mut sent = 0;
    for description in ir::architecture::ALL {
        for seed in 0..20 {
            let program = Arc::new(ir::arbitrary::program_of(description, seed));
            let packets: Vec<_> = (0..40)
                .map(|i| (i % 9, ir::arbitrary::packet(seed * 100 + u64::from(i))))
                .collect();
            let [reference, native] =
                executors(&program).map(|executor| run(&program, executor, &packets));
            assert_eq!(reference, native, "{} {seed}", description.name);
            sent += reference.0.iter().flatten().count();
        }
    }
    assert!(sent > 100, "{sent}");
}
