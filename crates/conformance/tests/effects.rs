//! Random programs whose expressions and calls have effects, against a reference evaluator of the specification's rules.

use conformance::effects;

/// Programs; each is compiled twice and run on six packets.
const PROGRAMS: u64 = 300;

#[test]
fn effects_happen_in_the_order_of_the_specification() {
    for seed in 0..PROGRAMS {
        let case = effects::case(seed);
        if let Err(error) = effects::run(&case) {
            let (case, error) = effects::minimise(&case, error);
            panic!("seed {seed}: {error}\nthe case: {case:02x?}");
        }
    }
}
