//! Packets per second of a small router, machine code against interpreter, in memory on one core; and what compiling it costs.
//!
//! `cargo bench -p holdfast-jit`, where `large` is the time from source text to running code of a program of 6,000 lines. Times are medians of many repetitions; `halves` is the two native functions alone, without the
//! switch around them.
#![expect(clippy::disallowed_macros, reason = "a command prints")]
#![expect(clippy::disallowed_methods, reason = "a command measures")]

use engine::Time;
use engine::control::{Entity, Entry, Operation, Update};
use engine::{
    Executor, Intents, Interpreter, Packet, PacketContext, Runtime, Switch, SwitchConfig,
};
use ir::arbitrary::Rng;
use ir::{ActionCall, ActionId, Bits, KeyMatch, Layout, Program, TableId};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUTES: u32 = 1000;
const PACKETS: usize = 256;
const REPETITIONS: usize = 60;

fn main() {
    let program = Arc::new(ir::text::parse(include_str!("router.ir")).expect("the router parses"));
    let compile_time = median((0..REPETITIONS).map(|_| {
        let start = Instant::now();
        black_box(jit::compile(program.clone()).expect("compiles"));
        start.elapsed()
    }));
    let jit = Arc::new(jit::compile(program.clone()).expect("compiles"));
    println!(
        "compile            {compile_time:>10.2?}   {:?}",
        jit.stats()
    );
    let interpreter = Arc::new(Interpreter::new(program.clone()));
    let packets = packets();
    // Any word on the command line that is one of these names picks what runs, for a profiler.
    let picked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let run = |name: &str, measure: &dyn Fn() -> Duration| {
        if !picked.is_empty() && !picked.iter().any(|p| p == name) {
            return None;
        }
        let time = measure();
        let millions = 1e-6 / time.as_secs_f64();
        println!("{name:<18} {time:>10.2?}   {millions:.2} Mpacket/s");
        Some(time.as_secs_f64())
    };
    run("large", &large_time);
    let slow = run("interpreter", &|| {
        switch_time(&program, interpreter.clone(), &packets, 4)
    });
    let fast = run("jit", &|| switch_time(&program, jit.clone(), &packets, 40));
    run("halves", &|| halves_time(&program, &*jit, &packets));
    if let (Some(slow), Some(fast)) = (slow, fast) {
        println!("interpreter / jit  {:.1}", slow / fast);
    }
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn address(rng: &mut Rng) -> u32 {
    0x0a00_0000 | rng.below(1 << 16)
}

/// Makes IPv4 packets of 64 bytes with a right checksum.
fn packets() -> Vec<Packet> {
    let mut rng = Rng::new(1);
    (0..PACKETS)
        .map(|_| {
            let mut bytes = vec![0; 64];
            bytes[12..14].copy_from_slice(&[8, 0]);
            bytes[14] = 0x45;
            bytes[16..18].copy_from_slice(&50u16.to_be_bytes());
            bytes[22..24].copy_from_slice(&[64, 17]);
            bytes[26..30].copy_from_slice(&address(&mut rng).to_be_bytes());
            bytes[30..34].copy_from_slice(&address(&mut rng).to_be_bytes());
            let checksum = engine::hash::csum16(&bytes[14..34]);
            bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
            Packet::new(&bytes)
        })
        .collect()
}

fn routes(switch: &mut Switch) {
    let mut rng = Rng::new(2);
    let mut route = |prefix_len: u32, address: u32| {
        let mask = Bits::prefix_mask(32, prefix_len);
        let entry = Entry::new(
            vec![KeyMatch::Prefix {
                value: Bits::from_u64(32, address.into()).and(&mask),
                prefix_len,
            }],
            0,
            ActionCall {
                action: ActionId(1),
                args: vec![
                    Bits::from_u64(9, rng.below(8).into()),
                    Bits::from_u64(48, rng.next()),
                    Bits::from_u64(48, rng.next()),
                ],
            },
        );
        // A route drawn twice is refused the second time.
        let _ = switch.write(Update {
            operation: Operation::Insert,
            entity: Entity::TableEntry {
                table: TableId(0),
                entry,
            },
        });
    };
    route(8, 0x0a00_0000);
    let mut addresses = Rng::new(3);
    for i in 0..ROUTES {
        route(18 + i % 12, address(&mut addresses));
    }
}

/// Returns the median time that a switch needs per packet, from its arrival to its outputs.
fn switch_time(
    program: &Arc<Program>,
    executor: Arc<dyn Executor>,
    packets: &[Packet],
    rounds: usize,
) -> Duration {
    let mut switch = Switch::new(program.clone(), executor, SwitchConfig::default());
    routes(&mut switch);
    let mut out = Vec::new();
    let mut time = |switch: &mut Switch| {
        let mut total = Duration::ZERO;
        for _ in 0..rounds {
            // The copies are made outside of the measured time, as a receive queue would have them.
            let burst = packets.to_vec();
            let start = Instant::now();
            for packet in burst {
                switch.receive(Time::ZERO, 1, packet, &mut out);
            }
            total += start.elapsed();
            assert_eq!(out.len(), packets.len(), "every packet is routed");
            out.clear();
        }
        total / (rounds * packets.len()) as u32
    };
    median((0..REPETITIONS).map(|_| time(&mut switch)))
}

/// Returns the median time that `executor` needs per packet, for ingress and egress without the rest of the switch.
fn halves_time(program: &Arc<Program>, executor: &dyn Executor, packets: &[Packet]) -> Duration {
    let mut switch = Switch::new(
        program.clone(),
        Arc::new(Interpreter::new(program.clone())),
        SwitchConfig::default(),
    );
    routes(&mut switch);
    let runtime: &mut Runtime = switch.runtime_mut();
    let layout = Layout::new(program);
    let (mut state, mut emitted) = (vec![0; layout.limbs()], Vec::new());
    const ROUNDS: usize = 40;
    let mut time = || {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for packet in packets {
                state.fill(0);
                let mut cx = PacketContext {
                    now_ps: Time::ZERO,
                    state: &mut state,
                    packet: packet.stored(),
                    packet_len: packet.len(),
                    consumed: 0,
                    emitted: &mut emitted,
                    runtime: &mut *runtime,
                    intents: Intents::default(),
                    trace: None,
                };
                executor.run(ir::Pipeline::INGRESS, &mut cx);
                executor.run(ir::Pipeline::EGRESS, &mut cx);
                black_box(&cx.emitted);
            }
        }
        start.elapsed() / (ROUNDS * packets.len()) as u32
    };
    median((0..REPETITIONS).map(|_| time()))
}

/// Writes the P4 source of a program with many tables and actions over the same headers.
fn large_program() -> String {
    let mut text = String::from(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header wide_t {\n    bit<48> a;\n    bit<48> b;\n    bit<32> c;\n    bit<32> d;\n    bit<16> e;\n    bit<8> f;\n    bit<8> g;\n}\n\
         struct headers_t {\n    wide_t h0;\n    wide_t h1;\n}\nstruct metadata_t {\n    bit<32> m;\n    bit<16> n;\n}\n\
         parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {\n\
             state start {\n        packet.extract(hdr.h0);\n        transition select(hdr.h0.g) {\n            0: accept;\n            default: more;\n        }\n    }\n\
             state more {\n        packet.extract(hdr.h1);\n        transition accept;\n    }\n}\n\
         control V(inout headers_t hdr, inout metadata_t meta) {\n    apply { }\n}\n\
         control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {\n",
    );
    const TABLES: usize = 240;
    for i in 0..TABLES {
        for j in 0..2 {
            text += &format!(
                "    action set_{i}_{j}(bit<32> x, bit<16> y) {{\n        meta.m = meta.m + x;\n        meta.n = y ^ meta.n;\n        \
                 hdr.h0.c = hdr.h0.c ^ x;\n        hdr.h1.e = hdr.h1.e + y;\n    }}\n"
            );
        }
        text += &format!(
            "    table t_{i} {{\n        key = {{\n            hdr.h0.d: exact;\n            meta.n: ternary;\n        }}\n        \
             actions = {{\n            set_{i}_0;\n            set_{i}_1;\n        }}\n        size = 64;\n    }}\n"
        );
    }
    text += "    apply {\n";
    for i in 0..TABLES {
        text += &format!("        if (meta.m != {i}) {{\n            t_{i}.apply();\n        }}\n");
    }
    text += "        std.egress_spec = 1;\n    }\n}\n\
         control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {\n    apply { }\n}\n\
         control C(inout headers_t hdr, inout metadata_t meta) {\n    apply { }\n}\n\
         control D(packet_out packet, in headers_t hdr) {\n    apply {\n        packet.emit(hdr);\n    }\n}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n";
    text
}

/// Returns the median time of compiling the large program, from source text to machine code.
fn large_time() -> Duration {
    let text = large_program();
    let lines = text.lines().count();
    let mut stats = jit::CompileStats::default();
    let mut front = Vec::new();
    let total = median((0..5).map(|_| {
        let start = Instant::now();
        let outcome = compile::compile_text(&text, "large.p4", &compile::Options::default());
        let compiled = outcome.compiled.expect("the large program compiles");
        front.push(start.elapsed());
        let executor = jit::compile(Arc::new(compiled.program)).expect("is not too large");
        stats = executor.stats();
        start.elapsed()
    }));
    let front = median(front.into_iter());
    println!("large              {lines} lines, {front:.2?} to IR, {stats:?}");
    total
}
