//! The machine code against the interpreter: random programs, entries and packets, and every program of the corpus.
//!
//! Two switches of one program, one on each executor, are told the same and must do the same: every packet out, drop,
//! register, counter and digest.

mod corpus;
mod pair;

use ir::arbitrary::{Rng, packet, program};
use pair::Pair;

/// Programs that a plain `cargo test` tries. `JIT_SEEDS=from..to` in the environment asks for others.
const SEEDS: std::ops::Range<u64> = 0..400;

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("JIT_SEEDS") else {
        return SEEDS;
    };
    let parse = |n: &str| n.parse::<u64>().expect("JIT_SEEDS is from..to");
    let (from, to) = text.split_once("..").expect("JIT_SEEDS is from..to");
    parse(from)..parse(to)
}

#[test]
fn random_programs() {
    for seed in seeds() {
        let mut pair = Pair::new(program(seed), seed);
        let mut rng = Rng::new(seed);
        pair.configure(&mut rng);
        for i in 0..60 {
            if i % 20 == 19 {
                pair.configure(&mut rng);
            }
            let port = rng.below(8);
            pair.receive(port, &packet(rng.next()));
        }
        pair.compare_objects();
    }
}
