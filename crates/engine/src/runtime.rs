//! The stateful objects of one switch, as a packet sees them: tables, registers, counters, meters, digests, value sets and
//! the generator of random numbers.
//!
//! Both executors call this, machine code through thin shims. Nothing on the packet path allocates (but a digest) or fails: what is out of
//! range gives zero or does nothing, and is counted in [`OutOfRange`]. It does not know packets' headers, ports or copies.

use crate::digest::DigestQueue;
use crate::meter::{Meter, MeterConfig};
use crate::random::Random;
use crate::table::{Lookup, Table};
use crate::value_set::ValueSet;
use ir::{Bits, CounterId, DigestId, MeterId, Program, RegisterId, TableId, ValueSetId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a counter cell has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterData {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl CounterData {
    /// One more packet. The counts wrap around.
    #[inline]
    pub fn count(&mut self, packet_bytes: usize) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(packet_bytes as u64);
    }
}

/// How often programs used an index beyond the end of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutOfRange {
    /// Register reads and writes.
    pub registers: u64,
    /// Counts.
    pub counters: u64,
    /// Meter executions.
    pub meters: u64,
}

/// Arrays of up to this many limbs are allocated whole; larger ones keep only the cells that were written.
const DENSE_LIMBS: u64 = 1 << 22;

/// Cells of a fixed number of limbs, zero at first.
#[derive(Clone, Debug)]
struct Cells {
    size: u64,
    stride: usize,
    dense: Vec<u64>,
    sparse: BTreeMap<u64, Box<[u64]>>,
    zeros: Box<[u64]>,
}

impl Cells {
    fn new(size: u64, stride: usize) -> Cells {
        let limbs = size
            .checked_mul(stride as u64)
            .filter(|&n| n <= DENSE_LIMBS);
        Cells {
            size,
            stride,
            dense: vec![0; limbs.unwrap_or(0) as usize],
            sparse: BTreeMap::new(),
            zeros: vec![0; stride].into(),
        }
    }

    /// The cell's limbs; `None` beyond the end.
    #[inline]
    fn get(&self, index: u64) -> Option<&[u64]> {
        if index >= self.size {
            return None;
        }
        if self.dense.is_empty() {
            return Some(self.sparse.get(&index).unwrap_or(&self.zeros));
        }
        let at = index as usize * self.stride;
        Some(&self.dense[at..at + self.stride])
    }

    #[inline]
    fn get_mut(&mut self, index: u64) -> Option<&mut [u64]> {
        if index >= self.size {
            return None;
        }
        if self.dense.is_empty() {
            return Some(
                self.sparse
                    .entry(index)
                    .or_insert_with(|| self.zeros.clone()),
            );
        }
        let at = index as usize * self.stride;
        Some(&mut self.dense[at..at + self.stride])
    }
}

/// The cells of an indexed meter that are configured.
#[derive(Clone, Debug)]
struct MeterArray {
    bytes: bool,
    /// 0 for a direct meter, which is not executed by index.
    size: u64,
    configured: BTreeMap<u64, Meter>,
}

/// The stateful objects of one switch.
#[derive(Clone, Debug)]
pub struct Runtime {
    program: Arc<Program>,
    now_ps: u64,
    tables: Vec<Table>,
    registers: Vec<Cells>,
    /// Two limbs per cell: packets, bytes.
    counters: Vec<Cells>,
    meters: Vec<MeterArray>,
    value_sets: Vec<ValueSet>,
    digests: DigestQueue,
    random: Random,
    out_of_range: OutOfRange,
    /// As wide as the widest register; what a read beyond the end gives.
    zeros: Box<[u64]>,
}

impl Runtime {
    /// The objects of a verified program as they start. `seed` seeds the generator of random numbers.
    pub fn new(program: Arc<Program>, seed: u64) -> Runtime {
        let stride = |width: u32| width.div_ceil(64) as usize;
        let widest = program.registers.iter().map(|r| stride(r.width)).max();
        Runtime {
            now_ps: 0,
            tables: program
                .tables
                .iter()
                .map(|t| Table::new(&program, t))
                .collect(),
            registers: program
                .registers
                .iter()
                .map(|r| Cells::new(r.size, stride(r.width)))
                .collect(),
            counters: program
                .counters
                .iter()
                .map(|c| Cells::new(c.size.unwrap_or(0), 2))
                .collect(),
            meters: program
                .meters
                .iter()
                .map(|m| MeterArray {
                    bytes: m.bytes,
                    size: m.size.unwrap_or(0),
                    configured: BTreeMap::new(),
                })
                .collect(),
            value_sets: program.value_sets.iter().map(ValueSet::new).collect(),
            digests: DigestQueue::new(&program),
            random: Random::new(seed),
            out_of_range: OutOfRange::default(),
            zeros: vec![0; widest.unwrap_or(0)].into(),
            program,
        }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Sets the time for what follows. The switch does this before it runs an executor.
    pub fn set_now_ps(&mut self, now_ps: u64) {
        self.now_ps = now_ps;
    }

    /// The time last set.
    pub fn now_ps(&self) -> u64 {
        self.now_ps
    }

    /// How often programs went out of range.
    pub fn out_of_range(&self) -> OutOfRange {
        self.out_of_range
    }

    /// Looks up a key: the limbs of each key field in turn, as in [`ir::Layout`]. A hit is counted by the direct counter and
    /// restarts the idle timeout.
    #[inline]
    pub fn lookup(&mut self, table: TableId, key: &[u64], packet_bytes: usize) -> Lookup<'_> {
        self.tables[table.index()].lookup(key, packet_bytes, self.now_ps)
    }

    /// A table's contents.
    pub fn table(&self, table: TableId) -> &Table {
        &self.tables[table.index()]
    }

    /// A table's contents.
    pub fn table_mut(&mut self, table: TableId) -> &mut Table {
        &mut self.tables[table.index()]
    }

    /// The limbs of a register cell; zeros beyond the end, which is counted.
    #[inline]
    pub fn register_read(&mut self, register: RegisterId, index: u64) -> &[u64] {
        let cells = &self.registers[register.index()];
        match cells.get(index) {
            Some(cell) => cell,
            None => {
                self.out_of_range.registers += 1;
                &self.zeros[..cells.stride]
            }
        }
    }

    /// Writes a register cell; `value` has its limbs, unused high bits zero. Beyond the end nothing happens but a count.
    #[inline]
    pub fn register_write(&mut self, register: RegisterId, index: u64, value: &[u64]) {
        match self.registers[register.index()].get_mut(index) {
            Some(cell) => cell.copy_from_slice(&value[..cell.len()]),
            None => self.out_of_range.registers += 1,
        }
    }

    /// A register cell, without counting; `None` beyond the end.
    pub fn register_cell(&self, register: RegisterId, index: u64) -> Option<Bits> {
        let width = self.program.registers[register.index()].width;
        let cell = self.registers[register.index()].get(index)?;
        Some(Bits::from_limbs(width, cell))
    }

    /// Counts a packet in a cell.
    #[inline]
    pub fn count(&mut self, counter: CounterId, index: u64, packet_bytes: usize) {
        match self.counters[counter.index()].get_mut(index) {
            Some(cell) => {
                cell[0] = cell[0].wrapping_add(1);
                cell[1] = cell[1].wrapping_add(packet_bytes as u64);
            }
            None => self.out_of_range.counters += 1,
        }
    }

    /// A counter cell; `None` beyond the end.
    pub fn counter_cell(&self, counter: CounterId, index: u64) -> Option<CounterData> {
        let cell = self.counters[counter.index()].get(index)?;
        Some(CounterData {
            packets: cell[0],
            bytes: cell[1],
        })
    }

    /// Sets a counter cell; `false` beyond the end.
    pub fn set_counter_cell(&mut self, counter: CounterId, index: u64, data: CounterData) -> bool {
        match self.counters[counter.index()].get_mut(index) {
            Some(cell) => {
                cell.copy_from_slice(&[data.packets, data.bytes]);
                true
            }
            None => false,
        }
    }

    /// Meters a packet: 0 green, 1 yellow, 2 red. A cell that is not configured, or is out of range, gives green.
    #[inline]
    pub fn meter_execute(
        &mut self,
        meter: MeterId,
        index: u64,
        packet_bytes: usize,
        now_ps: u64,
    ) -> u8 {
        let array = &mut self.meters[meter.index()];
        if index >= array.size {
            self.out_of_range.meters += 1;
            return 0;
        }
        let amount = if array.bytes { packet_bytes as u64 } else { 1 };
        match array.configured.get_mut(&index) {
            Some(meter) => meter.execute(amount, now_ps) as u8,
            None => 0,
        }
    }

    /// A meter cell's configuration, `None` when it has none.
    pub fn meter_config(&self, meter: MeterId, index: u64) -> Option<MeterConfig> {
        let cell = self.meters[meter.index()].configured.get(&index)?;
        Some(cell.config())
    }

    /// Configures a meter cell (with full buckets), or with `None` takes its configuration away.
    pub fn set_meter_config(&mut self, meter: MeterId, index: u64, config: Option<MeterConfig>) {
        let now_ps = self.now_ps;
        let configured = &mut self.meters[meter.index()].configured;
        match config {
            Some(config) => {
                configured.insert(index, Meter::new(config, now_ps));
            }
            None => {
                configured.remove(&index);
            }
        }
    }

    /// Takes a meter cell out or puts one in, with its buckets as they are.
    pub fn swap_meter(&mut self, meter: MeterId, index: u64, cell: Option<Meter>) -> Option<Meter> {
        let configured = &mut self.meters[meter.index()].configured;
        match cell {
            Some(cell) => configured.insert(index, cell),
            None => configured.remove(&index),
        }
    }

    /// A value between `low` and `high`, both included; `low` if the interval is empty.
    #[inline]
    pub fn random(&mut self, low: u64, high: u64) -> u64 {
        self.random.between(low, high)
    }

    /// Queues a digest message: the limbs of each member in turn.
    pub fn digest(&mut self, digest: DigestId, values: &[u64]) {
        self.digests.push(digest, values, self.now_ps);
    }

    /// The messages for the control plane.
    pub fn digests_mut(&mut self) -> &mut DigestQueue {
        &mut self.digests
    }

    /// The messages for the control plane.
    pub fn digests(&self) -> &DigestQueue {
        &self.digests
    }

    /// Whether a value set has a member that matches the limbs of each key in turn.
    #[inline]
    pub fn value_set_contains(&self, value_set: ValueSetId, key: &[u64]) -> bool {
        self.value_sets[value_set.index()].contains(key)
    }

    /// A value set.
    pub fn value_set(&self, value_set: ValueSetId) -> &ValueSet {
        &self.value_sets[value_set.index()]
    }

    /// A value set.
    pub fn value_set_mut(&mut self, value_set: ValueSetId) -> &mut ValueSet {
        &mut self.value_sets[value_set.index()]
    }
}
