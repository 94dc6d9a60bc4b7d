//! Lookups in place: tables of every key that is looked up so, in every state that their structures go through.

use crate::pair::Pair;
use engine::control::{Entity, Entry, Operation};
use ir::arbitrary::Rng;
use ir::text::preamble;
use ir::{ActionCall, ActionId, BinaryOp, Bits, KeyMatch, TableId};

/// A key field: its width, and whether it is matched by prefix.
type Field = (u32, bool);

/// Makes a program with one table, whose key are the slots from `%20` on. The result is written to the packet.
fn program(fields: &[Field], tells_hit: bool) -> ir::Program {
    let named = [("h0.$valid", 1), ("h0.hit", 8), ("h0.out", 80), ("hit", 1)];
    let mut slots: Vec<(String, u32)> = named.map(|(name, width)| (name.into(), width)).into();
    let (mut names, mut keys) = (String::new(), String::new());
    for (i, (width, by_prefix)) in fields.iter().enumerate() {
        slots.push((format!("h0.f{i}"), *width));
        names += &format!(" %{}", 20 + i);
        let kind = if *by_prefix { "lpm" } else { "exact" };
        keys += &format!("key \"h0.f{i}\" id {} : {width} {kind}\n", i + 1);
    }
    let bits: u32 = fields.iter().map(|f| f.0).sum();
    let mut next = 20 + fields.len();
    if !bits.is_multiple_of(8) {
        slots.push(("h0.pad".into(), 8 - bits % 8));
        names += &format!(" %{next}");
        next += 1;
    }
    let [wide, short, mark] = [next, next + 1, next + 2];
    slots.extend(
        [("wide", 80), ("short", 8), ("mark", 8)].map(|(name, width)| (name.into(), width)),
    );
    let apply: Vec<String> = (0..fields.len()).map(|i| format!("%{}", 20 + i)).collect();
    let apply = apply.join(", ");
    let hit = if tells_hit { " hit %19" } else { "" };
    let mut text = preamble("lookups", slots);
    text += &format!(
        r#"
        header h0 "h0" valid %16 {{{names} %17 %18 }}
        action a0 "nothing" id 1 () {{ }}
        action a1 "write" id 2 (%{wide} "wide" id 1, %{short} "short" id 2) {{
          assign %18 = %{wide} assign %1 = zext(slice(%{short}, 1, 0), 9)
        }}
        action a2 "mark" id 3 (%{mark} "mark" id 1) {{ assign %18 = zext(%{mark}, 80) }}
        table t0 "t" id 1 {{ {keys} action a0 action a1 action a2 default a0() size 65536 }}
        state s0 "start" {{ extract h0 goto accept }}
        control verify_checksum {{ }}
        control ingress {{
          assign %1 = 9w5
          apply t0({apply}){hit}
          assign %17 = add(%17, zext(%19, 8))
        }}
        control egress {{ }}
        control compute_checksum {{ }}
        control deparser {{ emit h0 }}
        "#
    );
    ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Draws a value of `width` bits. Many of the values wider than 16 bits share their high bits with others.
fn value(width: u32, rng: &mut Rng) -> Bits {
    if width <= 16 || rng.one_in(10) {
        return rng.bits(width);
    }
    let low = width / 2;
    let high = Bits::from_u64(width - low, (rng.below(20) * 37).into());
    high.concat(&rng.bits(low))
}

fn random_matches(fields: &[Field], rng: &mut Rng) -> Vec<KeyMatch> {
    let one = |&(width, by_prefix): &Field| {
        if !by_prefix {
            // Few beside a prefix, so that a root gets many prefixes.
            let several = fields.len() > 1 && fields.iter().any(|f| f.1);
            return KeyMatch::Value(match several {
                true => Bits::from_u64(width, rng.below(3.min(1 << width.min(4))).into()),
                false => value(width, rng),
            });
        }
        let prefix_len = match rng.below(4) {
            0 => rng.below(width + 1),
            1 => width,
            _ => width.min(17 + rng.below(8)),
        };
        let value = value(width, rng).and(&Bits::prefix_mask(width, prefix_len));
        KeyMatch::Prefix { value, prefix_len }
    };
    fields.iter().map(one).collect()
}

fn random_call(rng: &mut Rng) -> ActionCall {
    let (action, widths): (u32, &[u32]) = match rng.below(6) {
        0 => (0, &[]),
        1 => (2, &[8]),
        _ => (1, &[80, 8]),
    };
    // Few different ones, so that entries share records and give them up.
    let arg = |w: &u32| Bits::from_u64(*w, rng.below(40).into());
    ActionCall {
        action: ActionId(action),
        args: widths.iter().map(arg).collect(),
    }
}

/// Returns a copy of `value` in which bit `bit`, counted from the lowest, is inverted.
fn flipped(value: &Bits, bit: u32) -> Bits {
    let width = value.width();
    let up_to_bit = Bits::prefix_mask(width, width - bit);
    let above_bit = Bits::prefix_mask(width, width - bit - 1);
    let mask = Bits::binary(BinaryOp::Xor, &up_to_bit, &above_bit);
    Bits::binary(BinaryOp::Xor, value, &mask)
}

/// Makes a packet whose key is that of an entry, close to that of an entry, or random.
fn packet(fields: &[Field], entries: &[Vec<KeyMatch>], rng: &mut Rng) -> Vec<u8> {
    let near = (!entries.is_empty() && !rng.one_in(6))
        .then(|| &entries[rng.below(entries.len() as u32) as usize]);
    let mut all: Option<Bits> = None;
    for (i, &(width, _)) in fields.iter().enumerate() {
        let field = match near.map(|n| &n[i]) {
            Some(KeyMatch::Value(value)) if rng.one_in(12) => {
                Bits::binary(BinaryOp::Xor, value, &Bits::from_u64(width, 1))
            }
            Some(KeyMatch::Value(value)) => value.clone(),
            Some(KeyMatch::Prefix { value, prefix_len }) => {
                let rest = Bits::prefix_mask(width, *prefix_len).not();
                let inside = Bits::binary(BinaryOp::Or, value, &rng.bits(width).and(&rest));
                match rng.one_in(5) {
                    true => flipped(&inside, rng.below(width)),
                    false => inside,
                }
            }
            _ => value(width, rng),
        };
        all = Some(match all {
            Some(before) => before.concat(&field),
            None => field,
        });
    }
    let key = all.expect("a key has fields");
    let key = match (8 - key.width() % 8) % 8 {
        0 => key,
        pad => key.concat(&Bits::zero(pad)),
    };
    let mut bytes = key.to_be_bytes();
    bytes.extend([0; 11]);
    // Sometimes too short, sometimes with a payload.
    match rng.below(20) {
        0 => bytes.truncate(3),
        1 => bytes.extend([7; 40]),
        _ => {}
    }
    bytes
}

/// Inserts, modifies and deletes random entries, and after every few changes compares packets, sent in bursts and one
/// by one.
fn come_and_go(fields: &[Field], seed: u64) {
    let program = program(fields, seed.is_multiple_of(2));
    let mut pair = Pair::new(program, seed);
    let mut rng = Rng::new(seed);
    let mut entries: Vec<Vec<KeyMatch>> = Vec::new();
    let table = TableId(0);
    let mut most = 0;
    for round in 0..64 {
        for _ in 0..if round < 4 { 2 } else { 400 } {
            let grows = round < 40;
            if entries.is_empty() || rng.one_in(8) != grows {
                let matches = random_matches(fields, &mut rng);
                let entry = Entry::new(matches.clone(), 0, random_call(&mut rng));
                if pair.write(Operation::Insert, Entity::TableEntry { table, entry }) {
                    entries.push(matches);
                }
                continue;
            }
            let at = rng.below(entries.len() as u32) as usize;
            let changes = rng.one_in(4);
            let matches = match changes {
                true => entries[at].clone(),
                false => entries.swap_remove(at),
            };
            let entry = Entry::new(matches, 0, random_call(&mut rng));
            let operation = if changes {
                Operation::Modify
            } else {
                Operation::Delete
            };
            assert!(pair.write(operation, Entity::TableEntry { table, entry }));
        }
        most = most.max(entries.len());
        if round % 8 == 5 {
            let action = rng.one_in(2).then(|| random_call(&mut rng));
            pair.write(
                Operation::Modify,
                Entity::DefaultAction {
                    table,
                    action,
                    note: None,
                },
            );
        }
        let count = 3 + rng.below(60);
        let burst: Vec<_> = (0..count)
            .map(|_| (rng.below(8), packet(fields, &entries, &mut rng)))
            .collect();
        assert_eq!(pair.receive_burst(&burst), u64::from(count), "{fields:?}");
        pair.receive(1, &packet(fields, &entries, &mut rng));
    }
    // Enough for a direct index, and for a hash map that grows bit by bit.
    let bits = fields.iter().map(|f| f.0).sum::<u32>();
    assert!(bits < 20 || most > 2060, "{fields:?}: {most} entries");
}

#[test]
fn in_tables_of_exact_keys() {
    for (i, fields) in [
        &[(1, false)][..],
        &[(9, false)],
        &[(48, false)],
        &[(64, false)],
        &[(65, false)],
        &[(128, false)],
        &[(32, false), (16, false)],
        &[(16, false), (48, false), (7, false)],
        &[(128, false), (100, false)],
        // Too long to be looked up in place.
        &[(128, false), (128, false), (5, false)],
    ]
    .into_iter()
    .enumerate()
    {
        come_and_go(fields, i as u64);
        come_and_go(fields, i as u64 + 1001);
    }
}

#[test]
fn in_tables_of_prefixes() {
    for (i, fields) in [
        &[(32, true)][..],
        &[(31, true)],
        &[(25, true)],
        &[(24, true)],
        &[(16, true)],
        &[(12, true)],
        &[(3, true)],
        &[(32, true), (12, false)],
        &[(12, false), (32, true)],
        &[(70, false), (28, true), (8, false)],
        // Longer than what is looked up in place.
        &[(33, true)],
        &[(128, true)],
    ]
    .into_iter()
    .enumerate()
    {
        come_and_go(fields, i as u64);
        come_and_go(fields, i as u64 + 1001);
    }
}
