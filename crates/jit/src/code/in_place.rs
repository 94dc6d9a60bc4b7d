//! Lookups in place: the loads of a lookup in [`engine::table::keymap`], in [`engine::table::lpm32`] or in an
//! array that the key is the index of, by a view of the table.
//!
//! The rare cases of these structures (an element below a block, a root without a direct index, a map that
//! grows) go to the function that all other tables use. Indices come from the structures themselves, so the
//! loads are in range; code that is generated with assertions checks each.

use super::{Memory, Words, constant_memory};
use crate::analysis::tables::{InPlaceTable, PrefixField};
use crate::frame::Frame;
use crate::views::TableView;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, TrapCode, Value};
use engine::runtime::CounterData;
use engine::table::keymap::{MULTIPLIER, SEED};
use engine::table::lpm32::{
    ALONE_BITS, ALONE_ENTRY_BITS, BELOW, CHILDREN, DIRECT_BITS, Direct, Places, Root, STRIDE,
};
use smallvec::SmallVec;
use std::mem::offset_of;

/// Returns the flags of loads from a table's structures. This memory does not change while the function runs, but
/// control flow decides where it may be read.
fn table_memory() -> MemFlagsData {
    MemFlagsData::trusted().with_readonly()
}

/// The result of a lookup in place.
pub(super) struct Found {
    pub record: Value,
    /// 1 if an entry matched, else 0; `None` if it is not needed.
    pub hit: Option<Value>,
}

/// What is needed to generate a lookup in place.
struct Lookup<'a> {
    table: &'a InPlaceTable,
    /// Offset in bytes of the table's view among the views.
    view: usize,
    views: Value,
    /// The block for cases that are not done in place.
    elsewhere: Block,
    /// The block after the lookup; its parameters are the address of the record and, if it is needed, the
    /// hit.
    done: Block,
    wants_hit: bool,
}

impl Memory<'_, '_> {
    /// Generates a lookup of `key` in the structures of the table with the view `number`, and calls `call` to
    /// generate a function call for the cases that these structures do not cover. Returns the address of the
    /// record, which holds the action and its arguments, and whether an entry was hit.
    pub(super) fn look_up_in_place(
        &mut self,
        number: usize,
        table: &InPlaceTable,
        key: &[Value],
        wants_hit: bool,
        call: impl FnOnce(&mut Self) -> Found,
    ) -> Found {
        let (elsewhere, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(elsewhere);
        for _ in 0..1 + usize::from(wants_hit) {
            self.b.append_block_param(done, I64);
        }
        let lookup = self.lookup(number, table, [elsewhere, done], wants_hit);
        match table.prefix {
            None if table.limbs == 0 => self.only_record(&lookup),
            None if table.is_direct => {
                let (entry, hit) = self.direct_entry(&lookup, key[0]);
                self.found(&lookup, entry, hit);
            }
            None => {
                let number = self.probe(&lookup, key);
                let one = self.imm(1);
                self.found(&lookup, number, one);
            }
            Some(field) => self.longest_prefix(&lookup, key, field),
        }
        self.continue_in(elsewhere);
        let found = call(self);
        let args: SmallVec<[BlockArg; 2]> = [Some(found.record), found.hit.filter(|_| wants_hit)]
            .into_iter()
            .flatten()
            .map(BlockArg::Value)
            .collect();
        self.b.ins().jump(done, &args);
        self.continue_in(done);
        let params = self.b.block_params(done);
        Found {
            record: params[0],
            hit: params.get(1).copied(),
        }
    }

    fn lookup<'t>(
        &mut self,
        number: usize,
        table: &'t InPlaceTable,
        [elsewhere, done]: [Block; 2],
        wants_hit: bool,
    ) -> Lookup<'t> {
        Lookup {
            table,
            view: number * size_of::<TableView>(),
            views: self.arrival_word(offset_of!(Frame, views)),
            elsewhere,
            done,
            wants_hit,
        }
    }

    /// Generates the end of a lookup that found the entry with the number `entry`: counts the hit if the
    /// table has a counter, and jumps to the end with the entry's record.
    fn found(&mut self, lookup: &Lookup<'_>, entry: Value, hit: Value) {
        self.assert_below(lookup, entry, offset_of!(TableView, entry_count));
        if lookup.table.counts {
            self.count_hit(lookup, entry, hit);
        }
        let numbers = self.view_word(lookup, offset_of!(TableView, record_of_entry));
        let at = self.element(numbers, entry, size_of::<u32>());
        let record = self.b.ins().uload32(table_memory(), at, 0);
        self.assert_below(lookup, record, offset_of!(TableView, record_count));
        let records = self.view_word(lookup, offset_of!(TableView, records));
        let at = self.element(records, record, 8 * lookup.table.stride);
        self.done(lookup, at, hit);
    }

    /// Generates code that counts the packet for an entry if `hit` is 1. Entry 0, which stands for a miss,
    /// has a counter that is never read.
    fn count_hit(&mut self, lookup: &Lookup<'_>, entry: Value, hit: Value) {
        let counters = self.view_word(lookup, offset_of!(TableView, counters));
        let cell = self.element(counters, entry, size_of::<CounterData>());
        let zero = self.imm(0);
        let bytes = self.words.b.ins().select(hit, self.packet_len, zero);
        for (more, offset) in [
            (hit, offset_of!(CounterData, packets)),
            (bytes, offset_of!(CounterData, bytes)),
        ] {
            let flags = MemFlagsData::trusted();
            let count = self.b.ins().load(I64, flags, cell, offset as i32);
            let count = self.b.ins().iadd(count, more);
            self.b.ins().store(flags, count, cell, offset as i32);
        }
    }

    /// Generates code that brings the data for a lookup of this exact key into the caches, as far as it is
    /// found in the key's first bucket.
    pub(super) fn touch(&mut self, number: usize, key: &[Value]) {
        let table = &self.analysis.tables_in_place[number];
        let after = self.b.create_block();
        let lookup = self.lookup(number, table, [after; 2], false);
        let entry = match table.is_direct {
            true => self.direct_entry(&lookup, key[0]).0,
            false => {
                let buckets = self.buckets(&lookup);
                let (_, first) = self.first_bucket(&lookup, key);
                let at = self.element(buckets, first, 8 * (1 + key.len()));
                let word = self.b.ins().load(I64, table_memory(), at, 0);
                let (number, zero) = (self.number(word), self.imm(0));
                self.b.ins().select(word, number, zero)
            }
        };
        let numbers = self.view_word(&lookup, offset_of!(TableView, record_of_entry));
        let at = self.element(numbers, entry, size_of::<u32>());
        // A load that stays though nobody uses the value.
        (self.b.ins()).load(I32, MemFlagsData::trusted(), at, 0);
        self.b.ins().jump(after, &[]);
        self.continue_in(after);
    }

    /// Generates the whole lookup in a table that matches one field by longest prefix, and the others, if
    /// any, exactly.
    fn longest_prefix(&mut self, lookup: &Lookup<'_>, key: &[Value], field: PrefixField) {
        let mut root = self.view_word(lookup, offset_of!(TableView, roots));
        if lookup.table.is_hashed() {
            let mut exact = key.to_vec();
            exact[field.limb] = self.imm(0);
            let number = self.probe(lookup, &exact);
            self.assert_below(lookup, number, offset_of!(TableView, root_count));
            root = self.element(root, number, size_of::<Root>());
        }
        let direct = self.direct(lookup, root);
        let [here, above, none, alone, alone_here, in_block] =
            [(); 6].map(|()| self.b.create_block());
        self.b.append_block_param(here, I64);
        // Limbs of a key have no bits beyond their width.
        let bits = self.shl_imm(key[field.limb], 32 - field.width);
        let found = self.direct_place(direct, bits);
        let below = offset_of!(Direct, below) as i32;
        let below = self.b.ins().load(I32, table_memory(), found, below);
        let zero = self.b.ins().iconst(I32, 0);
        let is_alone = (self.b.ins()).icmp(IntCC::SignedLessThan, below, zero);
        self.b.ins().brif(is_alone, alone, &[], in_block, &[]);

        self.continue_in(alone);
        let differs = self.differs_from_alone(below, bits);
        self.b.ins().brif(differs, none, &[], alone_here, &[]);
        self.continue_in(alone_here);
        let entry = (self.b.ins()).band_imm_u(below, (1 << ALONE_ENTRY_BITS) - 1);
        let entry = self.b.ins().uextend(I64, entry);
        self.b.ins().jump(here, &[entry.into()]);

        self.continue_in(in_block);
        let place = self.place(lookup, below, bits);
        // An entry, which is what most lookups find, is the only positive number.
        const { assert!(BELOW as i32 == i32::MIN) };
        let zero = self.b.ins().iconst(I32, 0);
        let is_entry = (self.b.ins()).icmp(IntCC::SignedGreaterThan, place, zero);
        let entry = self.b.ins().uextend(I64, place);
        (self.b.ins()).brif(is_entry, here, &[entry.into()], above, &[]);

        self.continue_in(above);
        (self.b.ins()).brif(place, lookup.elsewhere, &[], none, &[]);

        self.continue_in(none);
        let entry = offset_of!(Direct, entry) as i32;
        let entry = self.b.ins().uload32(table_memory(), found, entry);
        let default = offset_of!(Root, default) as i32;
        let default = self.b.ins().uload32(table_memory(), root, default);
        let best = self.b.ins().select(entry, entry, default);
        self.b.ins().jump(here, &[best.into()]);

        self.continue_in(here);
        let entry = self.b.block_params(here)[0];
        let zero = self.imm(0);
        let hit = self.b.ins().icmp(IntCC::NotEqual, entry, zero);
        let hit = self.b.ins().uextend(I64, hit);
        self.found(lookup, entry, hit);
    }
}

impl Words<'_> {
    /// Generates the jump to the end of the lookup, with the address of a record and the hit.
    fn done(&mut self, lookup: &Lookup<'_>, record: Value, hit: Value) {
        let args = [record.into(), hit.into()];
        let count = 1 + usize::from(lookup.wants_hit);
        self.b.ins().jump(lookup.done, &args[..count]);
    }

    /// Generates a load of the word of the table's view that is `offset` bytes from the view's beginning.
    fn view_word(&mut self, lookup: &Lookup<'_>, offset: usize) -> Value {
        let at = (lookup.view + offset) as i32;
        self.b.ins().load(I64, constant_memory(), lookup.views, at)
    }

    /// Generates a trap, in builds with assertions, if `index` is not below the number at the offset `count`
    /// of the view.
    fn assert_below(&mut self, lookup: &Lookup<'_>, index: Value, count: usize) {
        if cfg!(debug_assertions) {
            let count = self.view_word(lookup, count);
            let outside = (self.b.ins()).icmp(IntCC::UnsignedGreaterThanOrEqual, index, count);
            self.b.ins().trapnz(outside, TrapCode::HEAP_OUT_OF_BOUNDS);
        }
    }

    /// Generates the end of a lookup without a match: the record of the default action, which is the first.
    fn missed(&mut self, lookup: &Lookup<'_>) {
        let records = self.view_word(lookup, offset_of!(TableView, records));
        let zero = self.imm(0);
        self.done(lookup, records, zero);
    }

    /// Generates the lookup in a table without a key: the record of the default action, without a hit.
    fn only_record(&mut self, lookup: &Lookup<'_>) {
        let records = self.view_word(lookup, offset_of!(TableView, records));
        let ready = self.b.create_block();
        (self.b.ins()).brif(records, ready, &[], lookup.elsewhere, &[]);
        self.continue_in(ready);
        let zero = self.imm(0);
        self.done(lookup, records, zero);
    }

    /// Generates the address of element `index` of an array at `first` whose elements have `bytes` bytes.
    pub(super) fn element(&mut self, first: Value, index: Value, bytes: usize) -> Value {
        let offset = match bytes.is_power_of_two() {
            true => self.shl_imm(index, bytes.ilog2()),
            false => {
                let bytes = self.imm(bytes as u64);
                self.b.ins().imul(index, bytes)
            }
        };
        self.b.ins().iadd(first, offset)
    }

    /// Generates a load of the number of the entry for `key` from the array that the key is the index of, and
    /// the condition that there is one (entry 0 is none). The code jumps to `elsewhere` if the table has no
    /// such array now.
    fn direct_entry(&mut self, lookup: &Lookup<'_>, key: Value) -> (Value, Value) {
        let places = self.view_word(lookup, offset_of!(TableView, direct));
        let ready = self.b.create_block();
        (self.b.ins()).brif(places, ready, &[], lookup.elsewhere, &[]);
        self.continue_in(ready);
        let count = self.view_word(lookup, offset_of!(TableView, direct_count));
        let zero = self.imm(0);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, key, count);
        let place = self.b.ins().select(inside, key, zero);
        let at = self.element(places, place, size_of::<u32>());
        let entry = self.b.ins().uload32(table_memory(), at, 0);
        let entry = self.b.ins().select(inside, entry, zero);
        let hit = self.b.ins().icmp(IntCC::NotEqual, entry, zero);
        (entry, self.b.ins().uextend(I64, hit))
    }

    /// Generates the search for a key in the hash map, and returns the number stored there. The code ends the
    /// lookup with a miss if the key is not there.
    fn probe(&mut self, lookup: &Lookup<'_>, key: &[Value]) -> Value {
        let buckets = self.buckets(lookup);
        let (mask, first) = self.first_bucket(lookup, key);
        let [again, occupied, other, same, free] = [(); 5].map(|()| self.b.create_block());
        self.b.append_block_param(again, I64);
        self.b.ins().jump(again, &[first.into()]);

        self.b.switch_to_block(again);
        let bucket = self.b.block_params(again)[0];
        let at = self.element(buckets, bucket, 8 * (1 + key.len()));
        let word = self.b.ins().load(I64, table_memory(), at, 0);
        self.b.ins().brif(word, occupied, &[], free, &[]);

        self.continue_in(occupied);
        let is_key = self.is_key(at, key);
        self.b.ins().brif(is_key, same, &[], other, &[]);

        self.continue_in(other);
        let next = self.b.ins().iadd_imm_u(bucket, 1);
        let next = self.b.ins().band(next, mask);
        self.b.ins().jump(again, &[next.into()]);
        self.b.seal_block(again);

        self.continue_in(free);
        self.missed(lookup);

        self.continue_in(same);
        self.number(word)
    }

    /// Generates the number stored in the word of an occupied bucket.
    fn number(&mut self, word: Value) -> Value {
        let low = self.b.ins().ireduce(I32, word);
        let one = self.b.ins().iconst(I32, 1);
        let number = self.b.ins().isub(low, one);
        self.b.ins().uextend(I64, number)
    }

    /// Generates a load of the address of the hash map's buckets. The code jumps to `elsewhere` if the table
    /// has none now.
    fn buckets(&mut self, lookup: &Lookup<'_>) -> Value {
        let buckets = self.view_word(lookup, offset_of!(TableView, buckets));
        let ready = self.b.create_block();
        (self.b.ins()).brif(buckets, ready, &[], lookup.elsewhere, &[]);
        self.continue_in(ready);
        buckets
    }

    /// Generates the mask of bucket numbers and the number of the bucket at which the search for a key
    /// begins.
    fn first_bucket(&mut self, lookup: &Lookup<'_>, key: &[Value]) -> (Value, Value) {
        let hash = self.hash_key(key);
        let mask = self.view_word(lookup, offset_of!(TableView, bucket_mask));
        (mask, self.b.ins().band(hash, mask))
    }

    /// Generates a load of the address of a root's direct index. The code jumps to `elsewhere` if the root
    /// has none.
    fn direct(&mut self, lookup: &Lookup<'_>, root: Value) -> Value {
        let at = offset_of!(Root, direct) as i32;
        let direct = self.b.ins().load(I64, table_memory(), root, at);
        let indexed = self.b.create_block();
        (self.b.ins()).brif(direct, indexed, &[], lookup.elsewhere, &[]);
        self.continue_in(indexed);
        direct
    }

    /// Generates the address of the element of the direct index for the address bits `bits` (32 bits,
    /// left-aligned).
    fn direct_place(&mut self, direct: Value, bits: Value) -> Value {
        let index = self.shr_imm(bits, DIRECT_BITS);
        self.element(direct, index, size_of::<Direct>())
    }

    /// Generates a load of the element that belongs to `bits`, the address bits (32, left-aligned), in the
    /// block `block` of a prefix tree.
    fn place(&mut self, lookup: &Lookup<'_>, block: Value, bits: Value) -> Value {
        let block = self.b.ins().uextend(I64, block);
        self.assert_below(lookup, block, offset_of!(TableView, block_count));
        let blocks = self.view_word(lookup, offset_of!(TableView, blocks));
        let places = self.element(blocks, block, size_of::<Places>());
        let child = self.shr_imm(bits, STRIDE);
        let child = self.and_imm(child, CHILDREN as u64 - 1);
        let place = self.element(places, child, size_of::<u32>());
        self.b.ins().load(I32, table_memory(), place, 0)
    }

    /// Generates a value that is zero if the only prefix below an element of the direct index contains
    /// `bits`.
    fn differs_from_alone(&mut self, below: Value, bits: Value) -> Value {
        let bits = self.b.ins().ireduce(I32, bits);
        let wanted = self.b.ins().ishl_imm_u(bits, i64::from(DIRECT_BITS));
        let prefix = self.b.ins().ishl_imm_u(below, i64::from(ALONE_BITS));
        let ignored = self.b.ins().ushr_imm_u(below, i64::from(32 - ALONE_BITS));
        let difference = self.b.ins().bxor(wanted, prefix);
        self.b.ins().ushr(difference, ignored)
    }

    /// Generates [`engine::table::keymap::hash`] of a key.
    fn hash_key(&mut self, key: &[Value]) -> Value {
        let mut hash = self.imm(SEED);
        for &limb in key {
            let multiplier = self.imm(MULTIPLIER);
            let mixed = self.b.ins().bxor(hash, limb);
            let low = self.b.ins().imul(mixed, multiplier);
            let high = self.b.ins().umulhi(mixed, multiplier);
            hash = self.b.ins().bxor(high, low);
        }
        hash
    }

    /// Generates the condition that the occupied bucket at the address `bucket` holds this key.
    fn is_key(&mut self, bucket: Value, key: &[Value]) -> Value {
        let mut differences = None;
        for (i, &limb) in key.iter().enumerate() {
            let at = 8 * (1 + i as i32);
            let stored = self.b.ins().load(I64, table_memory(), bucket, at);
            if key.len() == 1 {
                return self.b.ins().icmp(IntCC::Equal, stored, limb);
            }
            let difference = self.b.ins().bxor(stored, limb);
            differences = Some(match differences {
                None => difference,
                Some(others) => self.b.ins().bor(others, difference),
            });
        }
        let differences = differences.expect("a key has limbs");
        let zero = self.imm(0);
        self.b.ins().icmp(IntCC::Equal, differences, zero)
    }
}
