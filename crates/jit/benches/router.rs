//! Packets per second of a small router, machine code against interpreter, in memory on one core; and what compiling it costs.
//!
//! `cargo bench -p holdfast-jit`. Times are medians of many repetitions; `halves` is the two native functions alone, without the
//! switch around them.

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

/// IPv4 packets of 64 bytes with a right checksum.
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
            vec![KeyMatch::Lpm {
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

/// Time per packet through a whole switch.
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
                switch.receive(0, 1, packet, &mut out);
            }
            total += start.elapsed();
            assert_eq!(out.len(), packets.len(), "every packet is routed");
            out.clear();
        }
        total / (rounds * packets.len()) as u32
    };
    median((0..REPETITIONS).map(|_| time(&mut switch)))
}

/// Time per packet in the executor only.
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
                    now_ps: 0,
                    state: &mut state,
                    packet: packet.bytes(),
                    consumed: 0,
                    emitted: &mut emitted,
                    runtime: &mut *runtime,
                    intents: Intents::default(),
                    trace: None,
                };
                executor.ingress(&mut cx);
                executor.egress(&mut cx);
                black_box(&cx.emitted);
            }
        }
        start.elapsed() / (ROUNDS * packets.len()) as u32
    };
    median((0..REPETITIONS).map(|_| time()))
}
