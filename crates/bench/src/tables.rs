//! Measures tables alone: insertions and deletions per second through the switch's control interface, the longest single update, lookups of
//! random keys that match, bytes per entry.
//!
//! Each lookup waits for the one before, because each key depends on the last result. This is the time that a single packet sees; packets whose
//! lookups overlap see less.
#![expect(clippy::disallowed_methods, reason = "this is what measures")]

use crate::contents::{Match, Target};
use crate::random::Random;
use crate::router::{next_hops, prefixes};
use crate::source;
use engine::control::Entry;
use engine::{Switch, Time};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Instant;

/// The measured tables: a name, the table in the program, and the number of entries.
pub const TABLES: [(&str, &str, usize); 7] = [
    ("exact_1m", "exact", 1_000_000),
    ("lpm_32_1k", "lpm_32", 1_000),
    ("lpm_32_1m", "lpm_32", 1_000_000),
    ("lpm_128_100k", "lpm_128", 100_000),
    ("ternary_500", "ternary", 500),
    ("ternary_100k", "ternary", 100_000),
    ("range_10k", "range", 10_000),
];

/// The number of different masks in the large ternary table; the small one has a quarter of them.
const MASKS: usize = 48;

/// The number of keys from which lookups choose.
const KEYS: usize = 1 << 16;

/// The number of lookups between two readings of the clock; small, so that interruptions by other programs affect few
/// windows.
const WINDOW: usize = 256;

/// The number of repetitions. The shortest time of each update counts, so that interruptions do not.
const REPETITIONS: usize = 3;

/// The measured figures of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableMeasurement {
    /// Its name in [`TABLES`].
    #[serde(rename = "table")]
    pub name: String,
    /// The number of entries.
    pub entries: usize,
    /// The number of insertions per second.
    pub inserts_per_s: f64,
    /// The number of deletions per second.
    pub deletes_per_s: f64,
    /// The time in microseconds of the longest insertion or deletion.
    pub longest_update_us: f64,
    /// The time in microseconds within which 999 of 1,000 insertions ended.
    pub p999_update_us: f64,
    /// The time of a lookup in nanoseconds.
    pub lookup_ns: f64,
    /// The heap memory in bytes per entry, for all of the table's structures together.
    pub bytes_per_entry: f64,
}

/// The entries of a table, and keys that match them.
struct Contents {
    entries: Vec<Entry>,
    /// The limbs of all keys, one key after the other.
    keys: Vec<u64>,
    limbs: usize,
}

/// Measures filling a table, looking up keys and emptying it. If `quick`, uses a hundredth of the entries. Fails if
/// there is no such table.
pub fn measure_table(name: &str, quick: bool) -> Result<TableMeasurement, String> {
    let known = TABLES.iter().find(|(known, _, _)| *known == name);
    let &(_, table, full) = known.ok_or_else(|| {
        let names: Vec<&str> = TABLES.iter().map(|(name, _, _)| *name).collect();
        format!("there is no table {name:?}; there are {}", names.join(", "))
    })?;
    let count = if quick { full / 100 } else { full };
    let mut switch = source::switch("benches/tables.p4", &[])?;
    let target = Target::new(&switch, table, "forward")?;
    let contents = contents(&target, table, count);
    let mut random = Random::new(20);
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        order.swap(i, random.below(i + 1));
    }
    let mut updates = [vec![f64::INFINITY; count], vec![f64::INFINITY; count]];
    let (mut bytes, mut lookup_ns) = (0, f64::INFINITY);
    for _ in 0..REPETITIONS {
        insert_all(&mut switch, &target, &contents.entries, &mut updates[0])?;
        bytes = switch.runtime().table(target.table()).heap_bytes();
        lookup_ns = look_up(&mut switch, &target, &contents)?.min(lookup_ns);
        let entries = order.iter().map(|&at| &contents.entries[at]);
        delete_all(&mut switch, &target, entries, &mut updates[1])?;
        // A new table has everything to grow again.
        switch = source::switch("benches/tables.p4", &[])?;
    }
    let [inserted, deleted] = [0, 1].map(|i| updates[i].iter().sum::<f64>());
    let mut times = updates.concat();
    times.sort_unstable_by(f64::total_cmp);
    Ok(TableMeasurement {
        name: name.to_string(),
        entries: count,
        inserts_per_s: count as f64 / inserted,
        deletes_per_s: count as f64 / deleted,
        longest_update_us: times.last().map_or(0.0, |t| t * 1e6),
        p999_update_us: times.get(times.len() * 999 / 1000).map_or(0.0, |t| t * 1e6),
        lookup_ns,
        bytes_per_entry: bytes as f64 / count as f64,
    })
}

/// Inserts entries, and updates `shortest`, the shortest time of each insertion so far in seconds. Fails if the
/// switch refuses an entry.
fn insert_all(
    switch: &mut Switch,
    target: &Target,
    entries: &[Entry],
    shortest: &mut [f64],
) -> Result<(), String> {
    for (entry, shortest) in entries.iter().zip(shortest) {
        let entry = entry.clone();
        let start = Instant::now();
        let done = switch.insert_entry(target.table(), entry);
        *shortest = shortest.min(start.elapsed().as_secs_f64());
        done.map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Deletes entries, and updates `shortest`, the shortest time of each deletion so far in seconds. Fails if the switch
/// refuses a deletion, or if entries are left in the end.
fn delete_all<'a>(
    switch: &mut Switch,
    target: &Target,
    entries: impl Iterator<Item = &'a Entry>,
    shortest: &mut [f64],
) -> Result<(), String> {
    for (entry, shortest) in entries.zip(shortest) {
        let start = Instant::now();
        let done = switch.delete_entry(target.table(), &entry.matches, entry.priority);
        *shortest = shortest.min(start.elapsed().as_secs_f64());
        done.map_err(|e| e.to_string())?;
    }
    match switch.runtime().table(target.table()).is_empty() {
        true => Ok(()),
        false => Err("entries are left".to_string()),
    }
}

/// Looks up keys that match, in windows between two readings of the clock, and returns the median time per lookup in
/// nanoseconds.
fn look_up(switch: &mut Switch, target: &Target, contents: &Contents) -> Result<f64, String> {
    let table = switch.runtime_mut().table_mut(target.table());
    let limbs = contents.limbs;
    let count = contents.keys.len() / limbs;
    let mut times = Vec::new();
    // The first pass warms up.
    for pass in 0..4 {
        for window in contents.keys.chunks_exact(limbs * WINDOW) {
            let (mut hits, mut at) = (0, 0);
            let start = Instant::now();
            for i in 0..WINDOW {
                let found = table.lookup(&window[at * limbs..][..limbs], 64, Time::ZERO);
                hits += usize::from(found.hit);
                // Depends on the result, without any effect: entries' numbers are below 2^31.
                at = (i + 1 + (found.entry >> 31) as usize) & (WINDOW - 1);
            }
            let time = start.elapsed();
            if hits != WINDOW {
                return Err(format!(
                    "{} of {WINDOW} keys matched nothing",
                    WINDOW - hits
                ));
            }
            if pass > 0 {
                times.push(time.as_secs_f64() / WINDOW as f64 * 1e9);
            }
        }
    }
    debug_assert_eq!(times.len(), 3 * count / WINDOW);
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn contents(target: &Target, table: &str, count: usize) -> Contents {
    let mut random = Random::new(21);
    match table {
        "exact" => exact(target, count, &mut random),
        "lpm_32" => lpm_32(target, count, &mut random),
        "lpm_128" => lpm_128(target, count, &mut random),
        "ternary" => ternary(target, count, &mut random),
        _ => ranges(target, count, &mut random),
    }
}

/// Returns the action arguments of route number `i`: the port and the Ethernet address of one of 256 next hops.
fn args(i: usize) -> [u128; 2] {
    [(i % 64) as u128, 0x0600_0000_0000 | (i % 256) as u128]
}

fn exact(target: &Target, count: usize, random: &mut Random) -> Contents {
    let mut addresses = BTreeSet::new();
    while addresses.len() < count {
        addresses.insert(random.next_u64() >> 16);
    }
    let addresses: Vec<u64> = addresses.into_iter().collect();
    let entry =
        |(i, &address): (usize, &u64)| target.entry(&[Match::Exact(address.into())], 0, &args(i));
    Contents {
        entries: addresses.iter().enumerate().map(entry).collect(),
        keys: (0..KEYS).map(|_| addresses[random.below(count)]).collect(),
        limbs: 1,
    }
}

fn lpm_32(target: &Target, count: usize, random: &mut Random) -> Contents {
    let prefixes = prefixes(count);
    let hops = next_hops();
    let entry = |(i, p): (usize, &crate::structures::routes::Prefix)| {
        let hop = hops[i % hops.len()];
        let args = [hop.port.into(), hop.destination.into()];
        target.entry(&[Match::Lpm(p.address.into(), p.len)], 0, &args)
    };
    let key = |random: &mut Random| {
        let prefix = prefixes[random.below(count)];
        let host = u64::from(random.next_u32()) & ((1 << (32 - prefix.len)) - 1);
        u64::from(prefix.address) | host
    };
    Contents {
        entries: prefixes.iter().enumerate().map(entry).collect(),
        keys: (0..KEYS).map(|_| key(random)).collect(),
        limbs: 1,
    }
}

fn lpm_128(target: &Target, count: usize, random: &mut Random) -> Contents {
    let mut prefixes = BTreeSet::new();
    while prefixes.len() < count {
        let len = [29, 32, 32, 36, 40, 44, 48, 48, 48, 48, 48, 56, 64][random.below(13)];
        // 2000::/12 to 2c00::/12, of which a few /20s are in use.
        let high = 0x2000 | (random.below(4) as u64) << 10 | random.below(8) as u64;
        let address = u128::from(high << 48 | random.next_u64() >> 16) << 64;
        prefixes.insert((address & (u128::MAX << (128 - len)), len));
    }
    let prefixes: Vec<(u128, u32)> = prefixes.into_iter().collect();
    let entry = |(i, &(address, len)): (usize, &(u128, u32))| {
        target.entry(&[Match::Lpm(address, len)], 0, &args(i))
    };
    let mut keys = Vec::new();
    for _ in 0..KEYS {
        let (address, _) = prefixes[random.below(count)];
        keys.extend([random.next_u64(), (address >> 64) as u64]);
    }
    Contents {
        entries: prefixes.iter().enumerate().map(entry).collect(),
        keys,
        limbs: 2,
    }
}

fn ternary(target: &Target, count: usize, random: &mut Random) -> Contents {
    const WIDTHS: [u32; 5] = [32, 32, 16, 16, 8];
    let masks: Vec<[u64; 5]> = (0..if count > 1000 { MASKS } else { MASKS / 4 })
        .map(|_| {
            // Prefixes of addresses; ports and protocol in full or not at all.
            WIDTHS.map(|width| {
                let free = match width {
                    32 => random.below(20) as u32,
                    _ => width * random.below(2) as u32,
                };
                (u64::MAX >> (64 - width)) & u64::MAX << free
            })
        })
        .collect();
    let mut seen = BTreeSet::new();
    let (mut entries, mut values) = (Vec::new(), Vec::new());
    while entries.len() < count {
        let mask = masks[random.below(masks.len())];
        let value = mask.map(|mask| random.next_u64() & mask);
        if seen.insert((mask, value)) {
            let matches: Vec<Match> = (value.iter().zip(mask))
                .map(|(&value, mask)| Match::Ternary(value.into(), mask.into()))
                .collect();
            // As if in order of insertion.
            let priority = (count - entries.len()) as i32;
            entries.push(target.entry(&matches, priority, &args(entries.len())));
            values.push((value, mask));
        }
    }
    let mut keys = Vec::new();
    for _ in 0..KEYS {
        let (value, mask) = values[random.below(count)];
        for ((value, mask), width) in value.iter().zip(mask).zip(WIDTHS) {
            keys.push(value | random.next_u64() & !mask & (u64::MAX >> (64 - width)));
        }
    }
    Contents {
        entries,
        keys,
        limbs: 5,
    }
}

fn ranges(target: &Target, count: usize, random: &mut Random) -> Contents {
    let mut seen = BTreeSet::new();
    while seen.len() < count {
        let (a, b) = (random.below(1 << 16), random.below(1 << 16));
        // Half of them narrow.
        let b = if seen.len() % 2 == 0 {
            (a + b % 64).min(0xffff)
        } else {
            b
        };
        seen.insert((a.min(b), a.max(b)));
    }
    let mut ranges: Vec<(usize, usize)> = seen.into_iter().collect();
    for i in (1..count).rev() {
        ranges.swap(i, random.below(i + 1));
    }
    let entry = |(i, &(low, high)): (usize, &(usize, usize))| {
        let matches = [Match::Range(low as u128, high as u128)];
        target.entry(&matches, 1 + i as i32, &args(i))
    };
    let key = |random: &mut Random| {
        let (low, high) = ranges[random.below(count)];
        (low + random.below(high - low + 1)) as u64
    };
    Contents {
        entries: ranges.iter().enumerate().map(entry).collect(),
        keys: (0..KEYS).map(|_| key(random)).collect(),
        limbs: 1,
    }
}
