//! Every lookup structure against a linear scan, over random keys, entries and operations.

use super::*;
use crate::random::Random;
use ir::MatchKind;
use ir::{ActionId, ActionScope, TableAction};
use proptest::prelude::*;

/// The meaning of a table, in the fewest words.
#[derive(Default)]
struct Reference {
    entries: Vec<(Vec<KeyMatch>, i32, u32)>,
    /// Of an entry in an lpm table, the prefix length counts; else the priority.
    is_lpm: bool,
}

impl Reference {
    fn find(&self, matches: &[KeyMatch], priority: i32) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|(m, p, _)| m == matches && *p == priority)
    }

    /// Returns the argument of the best matching entry, the first of equally good ones; `None` if none matches.
    fn lookup(&self, key: &[Bits]) -> Option<u32> {
        let mut best: Option<(i32, u32)> = None;
        for (matches, priority, argument) in &self.entries {
            if !matches.iter().zip(key).all(|(m, k)| holds(m, k)) {
                continue;
            }
            let merit = if self.is_lpm {
                prefix_len(matches)
            } else {
                *priority
            };
            if best.is_none_or(|(other, _)| merit > other) {
                best = Some((merit, *argument));
            }
        }
        best.map(|(_, argument)| argument)
    }
}

fn prefix_len(matches: &[KeyMatch]) -> i32 {
    let mut lengths = matches.iter().filter_map(|m| match m {
        KeyMatch::Prefix { prefix_len, .. } => Some(*prefix_len as i32),
        _ => None,
    });
    lengths.next().unwrap_or(0)
}

fn holds(key_match: &KeyMatch, key: &Bits) -> bool {
    match key_match {
        KeyMatch::Value(value) => key == value,
        KeyMatch::Any => true,
        KeyMatch::Masked { value, mask } => key.and(mask) == *value,
        KeyMatch::Prefix { value, prefix_len } => {
            (0..*prefix_len).all(|i| key.bit(key.width() - 1 - i) == value.bit(key.width() - 1 - i))
        }
        KeyMatch::Range { low, high } => low.ucmp(key).is_le() && key.ucmp(high).is_le(),
    }
}

const WIDTHS: [u32; 14] = [1, 4, 6, 7, 8, 12, 31, 32, 48, 64, 65, 128, 129, 300];

fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.between(0, list.len() as u64 - 1) as usize]
}

/// Draws a value from a small pool, so that entries and keys often meet: a few bits differ at the top, in the middle
/// or at the bottom.
fn value(random: &mut Random, width: u32) -> Bits {
    let mut limbs = vec![0u64; width.div_ceil(64) as usize];
    for _ in 0..random.between(0, 3) {
        let near = pick(
            random,
            &[0, 1, 2, width / 2, width - 1, width.saturating_sub(2)],
        );
        let bit = near.min(width - 1);
        limbs[(bit / 64) as usize] |= 1 << (bit % 64);
    }
    Bits::from_limbs(width, &limbs)
}

fn key_match(random: &mut Random, key: &ir::Key) -> KeyMatch {
    let width = key.width;
    let first = value(random, width);
    let second = match random.between(0, 6) {
        0 => Bits::ones(width),
        1 => Bits::zero(width),
        2 => value(random, width),
        3 => value(random, width).not(),
        4 => Bits::prefix_mask(width, random.between(0, u64::from(width)) as u32),
        5 => Bits::prefix_mask(width, random.between(0, u64::from(width.min(3))) as u32),
        _ => Bits::prefix_mask(
            width,
            width - random.between(0, u64::from(width.min(2))) as u32,
        ),
    };
    key.kind.of_two(first, second).normal()
}

fn keys(random: &mut Random, kinds: &[MatchKind]) -> Vec<ir::Key> {
    let one = |(i, &kind): (usize, &MatchKind)| ir::Key {
        name: format!("k{i}"),
        id: i as u32 + 1,
        width: pick(random, &WIDTHS),
        kind,
    };
    kinds.iter().enumerate().map(one).collect()
}

/// Makes a program with one table that has these keys and one action with a 32-bit parameter.
fn program(keys: Vec<ir::Key>) -> ir::Program {
    let mut program = ir::arbitrary::program(1);
    program.slots.push(ir::Slot {
        name: "argument".to_string(),
        width: 32,
    });
    let slot = ir::SlotId(program.slots.len() as u32 - 1);
    program.actions = vec![ir::Action {
        name: "act".to_string(),
        id: 1,
        params: vec![ir::ActionParam {
            name: "argument".to_string(),
            id: 1,
            slot,
        }],
        body: vec![],
    }];
    program.tables = vec![ir::Table {
        name: "table".to_string(),
        id: 1,
        keys,
        actions: vec![TableAction {
            action: ActionId(0),
            scope: ActionScope::Both,
        }],
        default_action: ActionCall {
            action: ActionId(0),
            args: vec![Bits::from_u64(32, 9999)],
        },
        const_default_action: false,
        entries: vec![],
        const_entries: false,
        size: 0,
        direct_counter: None,
        direct_meter: None,
        implementation: None,
        support_timeout: false,
        hidden: false,
    }];
    program
}

fn new_entry<'a>(matches: &'a [KeyMatch], priority: i32, args: &'a [Bits]) -> NewEntry<'a> {
    NewEntry {
        matches,
        priority,
        is_const: false,
        idle_timeout_ns: 0,
        action: 0,
        args,
    }
}

/// Compares a table with the reference model: applies random operations to both, and compares lookups in between.
fn compare(seed: u64, kinds: &[MatchKind], operations: usize) -> Result<(), TestCaseError> {
    let mut random = Random::new(seed);
    let keys = keys(&mut random, kinds);
    let mut program = program(keys.clone());
    // A narrow key of a table that is declared for many entries is an index.
    program.tables[0].size = pick(&mut random, &[0, 1 << 16]);
    let mut table = Table::new(&program, &program.tables[0]);
    let needs_priority = program.tables[0].needs_priority();
    let mut reference = Reference {
        is_lpm: !needs_priority,
        ..Reference::default()
    };
    let mut deleted = Vec::new();
    for argument in 0..operations as u32 {
        let matches: Vec<KeyMatch> = keys.iter().map(|k| key_match(&mut random, k)).collect();
        let priority = if needs_priority {
            pick(&mut random, &[1, 2, 3, 7, i32::MAX])
        } else {
            0
        };
        let args = [Bits::from_u64(32, u64::from(argument))];
        let found = table.find(&matches, priority);
        let expected = reference.find(&matches, priority);
        prop_assert_eq!(found.is_some(), expected.is_some(), "{:?}", matches);
        match (found, expected) {
            (Some(entry), Some(at)) if random.between(0, 1) == 0 => {
                table.modify(entry, 0, &args, 0);
                reference.entries[at].2 = argument;
            }
            (Some(entry), Some(at)) => {
                deleted.extend(table.snapshot(entry));
                table.remove(entry);
                reference.entries.remove(at);
            }
            _ => {
                table.insert(new_entry(&matches, priority, &args), Time::ZERO);
                reference.entries.push((matches, priority, argument));
            }
        }
        if random.between(0, 3) == 0 && !reference.entries.is_empty() {
            let at = random.between(0, reference.entries.len() as u64 - 1) as usize;
            let (matches, priority, _) = reference.entries.remove(at);
            let entry = table.find(&matches, priority);
            prop_assert!(entry.is_some());
            table.remove(entry.unwrap_or(0));
        }
        check_lookups(&mut random, &keys, &mut table, &reference)?;
    }
    prop_assert_eq!(table.len(), reference.entries.len());
    for (matches, priority, _) in &reference.entries {
        let entry = table.find(matches, *priority).unwrap_or(0);
        table.remove(entry);
    }
    prop_assert!(table.is_empty());
    prop_assert_eq!(table.entries(), Vec::<u32>::new());
    Ok(())
}

fn check_lookups(
    random: &mut Random,
    keys: &[ir::Key],
    table: &mut Table,
    reference: &Reference,
) -> Result<(), TestCaseError> {
    for _ in 0..6 {
        let key: Vec<Bits> = keys.iter().map(|k| value(random, k.width)).collect();
        let packed: Vec<u64> = key.iter().flat_map(|k| k.limbs()).copied().collect();
        let expected = reference.lookup(&key);
        let found = table.lookup(&packed, 0, Time::ZERO);
        prop_assert_eq!(found.hit, expected.is_some(), "{:?}", key);
        prop_assert_eq!(
            found.args,
            &[u64::from(expected.unwrap_or(9999))][..],
            "{:?}",
            key
        );
    }
    Ok(())
}

use ir::MatchKind::{Exact, Lpm, Optional, Range, Selector, Ternary};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn exact(seed in any::<u64>(), fields in 1usize..4) {
        compare(seed, &[Exact; 3][..fields], 60)?;
    }

    #[test]
    fn exact_with_a_selector(seed in any::<u64>()) {
        compare(seed, &[Selector, Exact, Selector], 60)?;
    }

    #[test]
    fn lpm_alone(seed in any::<u64>()) {
        compare(seed, &[Lpm], 80)?;
    }

    #[test]
    fn lpm_beside_exact_fields(seed in any::<u64>(), at in 0usize..3) {
        let mut kinds = [Exact; 3];
        kinds[at] = Lpm;
        compare(seed, &kinds, 80)?;
    }

    #[test]
    fn ternary(seed in any::<u64>(), fields in 1usize..4) {
        compare(seed, &[Ternary; 3][..fields], 60)?;
    }

    #[test]
    fn range(seed in any::<u64>(), fields in 1usize..3) {
        compare(seed, &[Range; 2][..fields], 60)?;
    }

    #[test]
    fn optional(seed in any::<u64>(), fields in 1usize..4) {
        compare(seed, &[Optional; 3][..fields], 60)?;
    }

    #[test]
    fn mixed(seed in any::<u64>(), order in Just([Ternary, Range, Optional, Exact, Lpm]).prop_shuffle()) {
        compare(seed, &order, 60)?;
    }
}

#[test]
fn of_equal_priorities_the_first_inserted_wins_even_after_undo() {
    let keys = vec![ir::Key {
        name: "k".to_string(),
        id: 1,
        width: 8,
        kind: Ternary,
    }];
    let program = program(keys);
    let mut table = Table::new(&program, &program.tables[0]);
    let ternary = |value, mask| KeyMatch::Masked {
        value: Bits::from_u64(8, value),
        mask: Bits::from_u64(8, mask),
    };
    let arg = |n| [Bits::from_u64(32, n)];
    let first = table.insert(new_entry(&[ternary(0x10, 0xf0)], 5, &arg(1)), Time::ZERO);
    table.insert(new_entry(&[ternary(0x01, 0x0f)], 5, &arg(2)), Time::ZERO);
    assert_eq!(table.lookup(&[0x11], 0, Time::ZERO).args, [1]);
    let removed = table.snapshot(first).expect("is there");
    table.remove(first);
    assert_eq!(table.lookup(&[0x11], 0, Time::ZERO).args, [2]);
    table.restore(removed);
    assert_eq!(table.lookup(&[0x11], 0, Time::ZERO).args, [1]);
    let order: Vec<i32> = table
        .entries()
        .into_iter()
        .map(|e| table.action(e).1[0].low_u64() as i32)
        .collect();
    assert_eq!(order, [1, 2]);
}

/// Many routes come and go in a table that grows large.
#[test]
fn many_fields_at_once_find_what_each_finds() {
    let mut random = Random::new(5);
    for prefixes in [0, 1, 40, lpm32::DIRECT_FROM as u64 + 300] {
        let mut table = Lpm32Table::new(0, 32, [0].into());
        for i in 0..prefixes {
            let len = random.between(0, 32) as u32;
            let field = random.between(0, 0xffff) << 16 | random.between(0, 0xffff) & 0x1033;
            let value = field & (u64::from(u32::MAX) << (32 - len)) & u64::from(u32::MAX);
            if table.find(&[value], len).is_none() {
                table.insert(&[value], len, i as u32 + 1);
            }
        }
        let mut found = [0; lpm32::MANY];
        for count in [0, 1, 31, 32] {
            let fields: Vec<u64> = (0..count)
                .map(|_| random.between(0, 0xffff) << 16 | random.between(0, 0xffff) & 0x1033)
                .collect();
            table.lookup_many(&fields, &mut found);
            for (&field, &entry) in fields.iter().zip(&found) {
                assert_eq!(entry, table.lookup(&[field]), "{field:#x}");
            }
        }
    }
}

/// Prefixes of which many are the only ones that share their first sixteen bits, with numbers of entries that a place of the direct index
/// has room for and others; a lookup finds the longest that contains it, whatever came and went before.
#[test]
fn prefixes_that_are_alone_are_found_and_forgotten() {
    let mut random = Random::new(11);
    let mut table = Lpm32Table::new(0, 32, [0].into());
    let mut model = std::collections::BTreeMap::new();
    let field = |random: &mut Random| random.between(0, 1500) << 18 | random.between(0, 0x3ff) << 8;
    for round in 0..20_000u32 {
        let len = random.between(14, 26) as u32;
        let value = field(&mut random) & (u64::from(u32::MAX) << (32 - len));
        let grows = round < 4000 || random.between(0, 1) == 0;
        match model.contains_key(&(len, value)) {
            true => assert_eq!(table.remove(&[value], len), model.remove(&(len, value))),
            false if grows => {
                let entry = round + 1 + ((round % 3) << 18);
                table.insert(&[value], len, entry);
                model.insert((len, value), entry);
            }
            false => {}
        }
        if round % 3 != 0 {
            continue;
        }
        let known = model.keys().nth(round as usize % model.len().max(1));
        let near = known.map_or(0, |&(_, value)| value ^ 1 << random.between(6, 17));
        for key in [
            near,
            field(&mut random),
            known.map_or(0, |&(_, value)| value),
        ] {
            let longest = (0..=32u32).rev().find_map(|len| {
                let value = key & (u64::from(u32::MAX) << (32 - len)) & u64::from(u32::MAX);
                model.get(&(len, value)).copied()
            });
            assert_eq!(table.lookup(&[key]), longest.unwrap_or(0), "{key:#x}");
            let mut found = [0; lpm32::MANY];
            table.lookup_many(&[key], &mut found);
            assert_eq!(found[0], longest.unwrap_or(0), "{key:#x}");
        }
    }
}

fn large_routing_table(width: u32, lengths: &[u32]) {
    let keys = vec![ir::Key {
        name: "dst".to_string(),
        id: 1,
        width,
        kind: Lpm,
    }];
    let program = program(keys);
    let mut table = Table::new(&program, &program.tables[0]);
    let mut random = Random::new(3);
    let mut model = std::collections::BTreeMap::new();
    let random_value = |random: &mut Random| {
        let high = Bits::from_limbs(width, &[random.next_u64(), random.next_u64()]);
        // A few bits vary at the top, so that prefixes contain each other.
        let mask = Bits::prefix_mask(width, 4).not();
        Bits::binary(ir::BinaryOp::Or, &high.and(&mask), &Bits::zero(width))
    };
    for n in 0..10_000u32 {
        let prefix_len = pick(&mut random, lengths);
        let value = random_value(&mut random).and(&Bits::prefix_mask(width, prefix_len));
        let key = (prefix_len, value.limbs().to_vec());
        let matches = vec![KeyMatch::Prefix { value, prefix_len }];
        let args = [Bits::from_u64(32, u64::from(n))];
        match table.find(&matches, 0) {
            Some(entry) if n % 2 == 0 => {
                table.modify(entry, 0, &args, 0);
                assert!(model.insert(key, n).is_some());
            }
            Some(entry) => {
                table.remove(entry);
                assert!(model.remove(&key).is_some());
            }
            None => {
                table.insert(new_entry(&matches, 0, &args), Time::ZERO);
                assert!(model.insert(key, n).is_none());
            }
        }
        if n % 3 == 0 {
            let any = random.between(0, 49.min(model.len() as u64 - 1)) as usize;
            let key = model.keys().nth(any).expect("is there").clone();
            let value = Bits::from_limbs(width, &key.1);
            let matches = [KeyMatch::Prefix {
                value,
                prefix_len: key.0,
            }];
            table.remove(table.find(&matches, 0).expect("is there"));
            model.remove(&key);
        }
        let key = random_value(&mut random);
        let longest = lengths.iter().filter_map(|&length| {
            let value = key.and(&Bits::prefix_mask(width, length));
            let argument = model.get(&(length, value.limbs().to_vec()))?;
            Some((length, *argument))
        });
        let expected = longest
            .max()
            .map_or(9999, |(_, argument)| u64::from(argument));
        assert_eq!(
            table.lookup(key.limbs(), 0, Time::ZERO).args,
            [expected],
            "{key} {n}"
        );
    }
    assert!(table.len() > 3000, "{}", table.len());
}

#[test]
fn large_routing_tables_are_right_while_they_change() {
    large_routing_table(
        32,
        &[
            0, 1, 5, 8, 11, 12, 13, 15, 16, 17, 20, 22, 24, 24, 24, 24, 28, 32,
        ],
    );
    large_routing_table(128, &[0, 4, 12, 16, 20, 32, 40, 44, 48, 48, 48, 64, 128]);
    large_routing_table(72, &[0, 7, 12, 14, 16, 18, 33, 48, 64, 65, 72]);
}

/// In the order of insertion, which leaves the last numbers in use until the end, and from the last one on; with actions that entries
/// share and that they do not.
#[test]
fn the_memory_of_entries_that_go_is_given_back() {
    const ENTRIES: u64 = 100_000;
    // Two exact fields are packed.
    for (kind, fields) in [(Exact, 1), (Exact, 2), (Lpm, 1), (Ternary, 1)] {
        let key = |id| ir::Key {
            name: format!("k{id}"),
            id,
            width: 48 / fields,
            kind,
        };
        let keys = (1..=fields).map(key).collect();
        let program = program(keys);
        let mut table = Table::new(&program, &program.tables[0]);
        let matches = |n| {
            if fields == 2 {
                let fields = [n >> 24, n & 0xff_ffff];
                return fields
                    .map(|n| KeyMatch::Value(Bits::from_u64(24, n)))
                    .to_vec();
            }
            let value = Bits::from_u64(48, n);
            vec![match kind {
                Exact => KeyMatch::Value(value),
                Lpm => KeyMatch::Prefix {
                    value,
                    prefix_len: 48,
                },
                _ => KeyMatch::Masked {
                    value,
                    mask: Bits::ones(48),
                },
            }]
        };
        for (shared, backwards) in [(true, false), (false, true), (false, false)] {
            let mut entries = Vec::new();
            for n in 0..ENTRIES {
                let argument = [Bits::from_u64(32, if shared { 1 } else { n })];
                entries.push(table.insert(new_entry(&matches(n), 1, &argument), Time::ZERO));
            }
            let full = table.heap_bytes();
            if backwards {
                entries.reverse();
            }
            for entry in entries {
                assert!(table.remove(entry));
            }
            let steps = (0..10_000).take_while(|_| table.tidy()).count();
            assert!(steps < 10_000);
            let left = table.heap_bytes();
            assert!(
                left < 2 << 20 && left < full / 2,
                "{kind:?}: {left} of {full} bytes"
            );
            assert_eq!(table.numbers(), 1);
        }
    }
}
