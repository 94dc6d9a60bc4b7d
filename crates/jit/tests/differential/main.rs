//! The machine code against the interpreter: random programs, entries and packets, and every program of the corpus.
//!
//! Two switches of one program, one on each executor, are told the same and must do the same: every packet out, drop,
//! register, counter and digest.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

mod comparisons;
mod corpus;
mod directed;
mod lookups;
mod packets;
mod pair;
mod sums;

use ir::arbitrary::{Rng, packet, program};
use ir::architecture::v1model;
use ir::{Digest, DigestId, Expr, Loc, Program, SlotId, Stmt, StmtKind};
use pair::Pair;

/// Programs that a plain `cargo test` tries. `JIT_SEEDS=from..to` in the environment asks for others.
const SEEDS: std::ops::Range<u64> = 0..200;

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("JIT_SEEDS") else {
        return SEEDS;
    };
    let parse = |n: &str| n.parse::<u64>().expect("JIT_SEEDS is from..to");
    let (from, to) = text.split_once("..").expect("JIT_SEEDS is from..to");
    parse(from)..parse(to)
}

/// Appends a digest of all slots to ingress and egress; paths that end early do not reach it.
fn tell_all(program: &mut Program) {
    let digest = DigestId(program.digests.len() as u32);
    program.digests.push(Digest {
        name: "all".into(),
        id: digest.0 + 1,
        widths: program.slots.iter().map(|s| s.width).collect(),
    });
    let slots = (0..program.slots.len() as u32).map(|i| Expr::Slot(SlotId(i)));
    let values: Vec<Expr> = slots.collect();
    for block in [v1model::INGRESS, v1model::EGRESS] {
        program.control_mut(block).push(Stmt {
            kind: StmtKind::Digest {
                digest,
                values: values.clone(),
            },
            loc: Loc::default(),
        });
    }
}

/// Removes from egress and what follows it everything that keeps machine code from making replicas, and makes ingress
/// request multicast.
fn multicast_plainly(program: &mut Program) {
    fn calm(body: &mut Vec<Stmt>) {
        use StmtKind::*;
        let asks = |s: &Stmt| {
            matches!(
                s.kind,
                Clone { .. } | Recirculate { .. } | Truncate { .. } | Assert { .. } | Loop { .. }
            )
        };
        body.retain(|s| !asks(s));
        for stmt in body {
            match &mut stmt.kind {
                If {
                    then, otherwise, ..
                } => [then, otherwise].into_iter().for_each(calm),
                Switch { cases, default, .. } => {
                    cases.iter_mut().for_each(|(_, body)| calm(body));
                    calm(default);
                }
                Block { body, .. } => calm(body),
                _ => {}
            }
        }
    }
    calm(program.control_mut(v1model::EGRESS));
    calm(program.control_mut(v1model::COMPUTE_CHECKSUM));
    calm(program.control_mut(v1model::DEPARSER));
    program.actions.iter_mut().for_each(|a| calm(&mut a.body));
    let standard = v1model::StandardMetadata::of(&program.architecture);
    let port = Expr::Slot(standard.ingress_port);
    let (a, high, low) = (Box::new(port), 2, 0);
    let a = Box::new(Expr::Slice { a, high, low });
    program.control_mut(v1model::INGRESS).push(Stmt {
        kind: StmtKind::Assign {
            dst: standard.mcast_grp,
            value: Expr::ZeroExtend { a, width: 16 },
        },
        loc: Loc::default(),
    });
}

#[test]
fn random_programs() {
    let (mut packets, mut left, mut drops, mut with_replicas) = (0, 0, 0, 0);
    for seed in seeds() {
        let mut program = program(seed);
        // EntryPoint of the programs tell all they know; in the others the code generator may leave out what nobody reads.
        if seed % 2 == 0 {
            tell_all(&mut program);
        }
        if seed % 3 == 0 {
            multicast_plainly(&mut program);
        }
        // Large enough that bursts are looked ahead.
        program.tables.iter_mut().for_each(|t| t.size = 1 << 20);
        let mut pair = Pair::new(program, seed);
        with_replicas += u32::from(pair.makes_replicas);
        let mut rng = Rng::new(seed);
        pair.configure(&mut rng);
        for i in 0..30 {
            if i % 10 == 9 {
                pair.configure(&mut rng);
                pair.random_port(&mut rng);
            }
            let port = rng.below(8);
            let mut bytes = packet(rng.next());
            if rng.one_in(3) {
                // Missing bytes may be zeros, which need not be stored.
                bytes.truncate(rng.below(bytes.len() as u32 + 1) as usize);
            }
            left += pair.receive(port, &bytes);
            packets += 1;
        }
        let burst: Vec<_> = (0..40)
            .map(|_| (rng.below(8), packet(rng.next())))
            .collect();
        left += pair.receive_burst(&burst);
        packets += 40;
        pair.compare_objects();
        drops += pair.drops();
    }
    // The programs do something: packets leave, and some are dropped.
    println!(
        "{packets} packets in, {left} out, {drops} drops; {with_replicas} programs with replicas"
    );
    assert!(packets < 1000 || with_replicas > 20);
    assert!(packets < 1000 || left > packets / 4 && drops > packets / 100);
}
