//! `ReadResponse`: entries of a table as bytes.

use crate::protobuf::{NotPlain, put_bytes, put_message, put_number};
use crate::tables::{PlainTable, PlainTables};
use engine::control::{EntryAction, InstalledEntry};
use ir::{Bits, KeyMatch, Program};

impl PlainTables {
    /// Entries of a table, but the default one, as a serialized `p4.v1.ReadResponse`. With `counters`, entries carry their direct
    /// counter if they have one.
    pub fn response(
        &self,
        table_id: u32,
        entries: &[InstalledEntry],
        counters: bool,
    ) -> Result<Vec<u8>, NotPlain> {
        let table = self.get(table_id)?;
        let mut out = Vec::with_capacity(entries.len() * 64);
        for entry in entries {
            put_message(&mut out, 1, |out| {
                put_message(out, 2, |out| {
                    put_entry(out, &self.program, table_id, table, entry, counters);
                });
            });
        }
        Ok(out)
    }
}

fn put_entry(
    out: &mut Vec<u8>,
    program: &Program,
    table_id: u32,
    table: &PlainTable,
    installed: &InstalledEntry,
    counters: bool,
) {
    let entry = &installed.entry;
    // Entries of plain tables run an action.
    let EntryAction::Call(call) = &entry.action else {
        return;
    };
    put_number(out, 1, table_id.into());
    for &at in &table.keys_by_id {
        put_match(out, table.keys[at].id, &entry.matches[at]);
    }
    put_message(out, 3, |out| {
        put_message(out, 1, |out| {
            let declared = &program.actions[call.action.index()];
            put_number(out, 1, declared.id.into());
            let mut args: Vec<_> = declared
                .params
                .iter()
                .map(|p| p.id)
                .zip(&call.args)
                .collect();
            args.sort_by_key(|&(id, _)| id);
            for (id, value) in args {
                put_message(out, 4, |out| {
                    put_number(out, 2, id.into());
                    put_value(out, 3, value);
                });
            }
        });
    });
    put_number(out, 4, u64::from(entry.priority.unsigned_abs()));
    if let Some(counter) = installed.counter.filter(|_| counters) {
        put_message(out, 7, |out| {
            // The message's numbers have 63 bits.
            put_number(out, 1, counter.bytes & i64::MAX as u64);
            put_number(out, 2, counter.packets & i64::MAX as u64);
        });
    }
    put_number(out, 9, entry.idle_timeout_ns);
    put_number(out, 13, installed.is_const.into());
}

/// A `FieldMatch`; nothing for a don't-care.
fn put_match(out: &mut Vec<u8>, id: u32, key_match: &KeyMatch) {
    let one =
        |out: &mut Vec<u8>, kind, value| put_message(out, kind, |out| put_value(out, 1, value));
    let two = |out: &mut Vec<u8>, kind, first, second| {
        put_message(out, kind, |out| {
            put_value(out, 1, first);
            put_value(out, 2, second);
        });
    };
    let put = |out: &mut Vec<u8>| match key_match {
        KeyMatch::Exact(value) => one(out, 2, value),
        KeyMatch::Ternary { value, mask } => two(out, 3, value, mask),
        KeyMatch::Lpm { value, prefix_len } => put_message(out, 4, |out| {
            put_value(out, 1, value);
            put_number(out, 2, u64::from(*prefix_len));
        }),
        KeyMatch::Range { low, high } => two(out, 6, low, high),
        KeyMatch::Optional(Some(value)) => one(out, 7, value),
        KeyMatch::Optional(None) => {}
    };
    let dont_care = match key_match {
        KeyMatch::Exact(_) | KeyMatch::Optional(Some(_)) => false,
        KeyMatch::Optional(None) => true,
        KeyMatch::Lpm { prefix_len, .. } => *prefix_len == 0,
        KeyMatch::Ternary { mask, .. } => mask.is_zero(),
        KeyMatch::Range { low, high } => low.is_zero() && *high == Bits::ones(high.width()),
    };
    if !dont_care {
        put_message(out, 2, |out| {
            put_number(out, 1, id.into());
            put(out);
        });
    }
}

/// The shortest byte string of a value.
fn put_value(out: &mut Vec<u8>, field: u32, value: &Bits) {
    let length = value.bit_length().div_ceil(8).max(1) as usize;
    let mut buffer = [0u8; 16];
    if length <= buffer.len() {
        let limbs = value.limbs();
        for (i, byte) in buffer[..length].iter_mut().rev().enumerate() {
            *byte = (limbs[i / 8] >> (8 * (i % 8))) as u8;
        }
        put_bytes(out, field, &buffer[..length]);
    } else {
        let bytes = value.to_be_bytes();
        put_bytes(out, field, &bytes[bytes.len() - length..]);
    }
}
