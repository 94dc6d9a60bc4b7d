//! The stateful objects of one switch, as a packet sees them: tables, registers, counters, meters, digests, value sets and
//! the generator of random numbers.
//!
//! Both executors call this, machine code through thin shims. Nothing on the packet path allocates (but a digest) or fails: an index out of
//! range gives zero or does nothing, and is counted in [`OutOfRange`]. It does not know packets' headers, ports or copies.

mod takeover;

use crate::Time;
use crate::cells::CellSlice;
pub use crate::cells::{Cells, CounterData};
use crate::digest::DigestQueue;
use crate::entry::Note;
use crate::idle::{Activity, EntryKey, IdleTimers};
use crate::ids;
use crate::meter::{Meter, MeterArray, MeterConfig};
use crate::port_state::PortStates;
use crate::profile::{Binding, GroupContents, Profile, Selection, Target};
use crate::random::Random;
use crate::table::{Lookup, Table, forget_last};
use crate::value_set::ValueSet;
use ir::{
    ActionCall, ActionProfileId, Bits, CounterId, DigestId, MeterId, Program, RegisterId, TableId,
    ValueSetId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often programs used an index beyond the end of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutOfRange {
    /// Register reads and writes.
    pub registers: u64,
    /// Counter updates.
    pub counters: u64,
    /// Meter executions.
    pub meters: u64,
}

/// An array of cells that programs address by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellArray {
    /// A register.
    Register(RegisterId),
    /// A counter.
    Counter(CounterId),
    /// A meter.
    Meter(MeterId),
}

/// What a hit in a table does besides selecting an action of the table: its direct meter, and its action profile.
#[derive(Clone, Debug)]
struct Attachment {
    meter: Option<MeterId>,
    implementation: Option<Implementation>,
}

/// How entries of a table with an action profile or selector lead to actions.
#[derive(Clone, Debug)]
struct Implementation {
    profile: ActionProfileId,
    /// For each action of the program, its position among the table's actions.
    positions: Vec<u32>,
    /// The number of the table's actions: the position that stands for no action, when no member is selectable.
    nothing: u32,
    /// The selector fields in the key, each with its offset and width.
    selector_fields: Vec<(usize, u32)>,
    /// For each entry, by its number, the member or group that it refers to.
    bindings: Vec<Option<Binding>>,
}

impl Implementation {
    fn new(program: &Program, table: &ir::Table, profile: ActionProfileId) -> Implementation {
        let mut positions = vec![0; program.actions.len()];
        for (i, action) in table.actions.iter().enumerate() {
            positions[action.action.index()] = i as u32;
        }
        let mut offset = 0;
        let mut selector_fields = Vec::new();
        for key in &table.keys {
            if !key.kind.is_looked_up() {
                selector_fields.push((offset, key.width));
            }
            offset += key.width.div_ceil(64) as usize;
        }
        Implementation {
            profile,
            positions,
            nothing: table.actions.len() as u32,
            selector_fields,
            bindings: Vec::new(),
        }
    }
}

/// The most, in picoseconds, by which a time may be behind the latest one before the clock counts as set back: a
/// second.
pub const SET_BACK_PS: u64 = 1_000_000_000_000;

/// The parts of an entry that are stored outside of its table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// In a table with an action profile or selector: what the entry refers to.
    pub target: Option<Target>,
    /// In a table with a direct meter: the entry's meter, if it is configured. It is boxed because it is large and
    /// most tables have none.
    pub meter: Option<Box<Meter>>,
    /// The note that the control plane stored with the entry.
    pub note: Option<Note>,
}

/// The stateful objects of one switch.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Runtime {
    now_ps: Time,
    /// The latest time since the clock was last set back.
    latest_ps: Time,
    tables: Vec<Table>,
    /// For each table, what a hit does besides selecting an action of the table; `None` for most tables.
    attachments: Vec<Option<Box<Attachment>>>,
    registers: Vec<Cells>,
    /// Two limbs per cell: packets, bytes.
    counters: Vec<Cells>,
    program: Arc<Program>,
    meters: Vec<MeterArray>,
    profiles: Vec<Profile>,
    ports: PortStates,
    /// How the last hit in a table with an action profile or selector selected its action.
    selection: Option<Selection>,
    /// A buffer for the bytes that a selector hashes.
    hashed: Vec<u8>,
    value_sets: Vec<ValueSet>,
    digests: DigestQueue,
    idle_timers: IdleTimers,
    random: Random,
    out_of_range: OutOfRange,
    /// The value, zero, of a register read beyond the end; as wide as the widest register.
    zeros: Box<[u64]>,
    /// The notes of the entries of each table, by number.
    notes: Vec<BTreeMap<u32, Note>>,
}

impl Runtime {
    /// Makes the objects of a verified program in their initial state. `seed` initialises the generator of random
    /// numbers.
    pub fn new(program: Arc<Program>, seed: u64) -> Runtime {
        let stride = |width: u32| width.div_ceil(64) as usize;
        let widest = program.registers.iter().map(|r| stride(r.width)).max();
        let mut runtime = Runtime {
            now_ps: Time::ZERO,
            latest_ps: Time::ZERO,
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
                .map(|m| MeterArray::new(m.bytes, m.size.unwrap_or(0)))
                .collect(),
            profiles: program.action_profiles.iter().map(Profile::new).collect(),
            attachments: program
                .tables
                .iter()
                .map(|t| attachment(&program, t))
                .collect(),
            ports: PortStates::all(true),
            selection: None,
            hashed: Vec::new(),
            value_sets: program.value_sets.iter().map(ValueSet::new).collect(),
            digests: DigestQueue::new(&program),
            idle_timers: IdleTimers::default(),
            random: Random::new(seed),
            out_of_range: OutOfRange::default(),
            zeros: vec![0; widest.unwrap_or(0)].into(),
            notes: vec![BTreeMap::new(); program.tables.len()],
            program,
        };
        runtime.write_port_states();
        runtime
    }

    /// Returns the program that declares these objects.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Sets the present time, in picoseconds. The switch does this before it runs an executor. A time up to
    /// [`SET_BACK_PS`] before the latest one counts as late, and nothing ages. A still earlier time means that the
    /// clock was set back, and ages count from the new time.
    #[inline]
    pub fn set_now_ps(&mut self, now_ps: Time) {
        self.now_ps = now_ps;
        if now_ps >= self.latest_ps {
            self.latest_ps = now_ps;
        } else if self.latest_ps - now_ps > SET_BACK_PS {
            self.clock_set_back(now_ps);
        }
    }

    /// Replaces every stored time later than `now_ps` by `now_ps`, after the clock was set back. Otherwise meters
    /// would get no tokens, and entries would not become idle, until the clock reached its former time again.
    #[cold]
    fn clock_set_back(&mut self, now_ps: Time) {
        self.latest_ps = now_ps;
        self.meters
            .iter_mut()
            .for_each(|m| m.clock_set_back(now_ps));
        self.tables
            .iter_mut()
            .for_each(|t| t.clock_set_back(now_ps));
        self.digests.clock_set_back(now_ps);
        let (program, tables) = (&self.program, &self.tables);
        let of = |key, entry| activity(program, tables, key, entry);
        self.idle_timers.clock_set_back(now_ps, of);
    }

    /// Returns the time that was last set, in picoseconds.
    pub fn now_ps(&self) -> Time {
        self.now_ps
    }

    /// Returns how often programs accessed a cell out of range, for each kind of object.
    pub fn out_of_range(&self) -> OutOfRange {
        self.out_of_range
    }

    /// Looks up a key, given as the limbs (64-bit words) of each key field in turn as in [`ir::Layout`], and returns
    /// the action to run. On a hit, the direct counter counts the packet, the direct meter marks it, and the entry's
    /// idle timeout starts again.
    #[inline]
    pub fn lookup(&mut self, table: TableId, key: &[u64], packet_bytes: usize) -> Lookup<'_> {
        match &self.attachments[table.index()] {
            None => self.tables[table.index()].lookup(key, packet_bytes, self.now_ps),
            Some(_) => self.lookup_attached(table.index(), key, packet_bytes),
        }
    }

    /// Looks up a key like [`Runtime::lookup`], given in the packed form of [`crate::table::Packing::of_table`]. The
    /// table must have such a packing.
    #[inline]
    pub fn lookup_packed(
        &mut self,
        table: TableId,
        packed: &[u64],
        packet_bytes: usize,
    ) -> Lookup<'_> {
        debug_assert!(self.attachments[table.index()].is_none());
        self.tables[table.index()].lookup_packed(packed, packet_bytes, self.now_ps)
    }

    /// Looks up a key like [`Runtime::lookup`], in a table that has a direct meter or an action profile. If the entry
    /// refers to a group of the profile, the selector chooses the member whose action is returned.
    fn lookup_attached(&mut self, table: usize, key: &[u64], packet_bytes: usize) -> Lookup<'_> {
        let now_ps = self.now_ps;
        let entry = self.tables[table].lookup(key, packet_bytes, now_ps).entry;
        let found = self.tables[table].found(entry);
        let Some(attachment) = &self.attachments[table] else {
            return found;
        };
        if let Some(meter) = attachment.meter {
            let meter = &mut self.meters[meter.index()];
            meter.last_colour = match found.hit {
                true => meter.mark(entry.into(), packet_bytes, now_ps),
                false => 0,
            };
        }
        let (Some(implementation), true) = (&attachment.implementation, found.hit) else {
            return found;
        };
        let profile = &self.profiles[implementation.profile.index()];
        let hashed = &mut self.hashed;
        let fields = implementation.selector_fields.iter();
        let fields = fields.map(|&(at, width)| (&key[at..at + width.div_ceil(64) as usize], width));
        let binding = implementation
            .bindings
            .get(entry as usize)
            .copied()
            .flatten();
        let selected = binding.map(|b| profile.select(b, || profile.hash(fields, hashed)));
        self.selection = selected.as_ref().map(|(_, selection)| *selection);
        match selected.and_then(|(member, _)| member) {
            Some((action, args)) => Lookup {
                action: implementation.positions[action.index()],
                args,
                ..found
            },
            None => Lookup {
                action: implementation.nothing,
                args: &[],
                ..found
            },
        }
    }

    /// Returns how the last hit in a table with an implementation selected its action; `None` if there was no such
    /// hit.
    pub fn selection(&self) -> Option<Selection> {
        self.selection
    }

    /// Returns the colour that a direct meter gave to the last hit of its table: 0 green (also after a miss), 1
    /// yellow, 2 red.
    #[inline]
    pub fn direct_meter_colour(&self, meter: MeterId) -> u8 {
        self.meters[meter.index()].last_colour
    }

    /// Returns the parts of an entry that are stored outside of its table: target, meter and note.
    pub fn attached(&self, table: TableId, entry: u32) -> Attached {
        let note = self.notes[table.index()].get(&entry).cloned();
        let Some(attachment) = &self.attachments[table.index()] else {
            return Attached {
                note,
                ..Attached::default()
            };
        };
        let target = attachment.implementation.as_ref().and_then(|i| {
            let binding = i.bindings.get(entry as usize).copied().flatten()?;
            self.profiles[i.profile.index()].target(binding)
        });
        let meter = attachment
            .meter
            .and_then(|m| self.meters[m.index()].cell(entry.into()));
        Attached {
            target,
            meter: meter.cloned().map(Box::new),
            note,
        }
    }

    /// Returns the members and groups to which the entries of a table refer; nothing if the table has no
    /// implementation.
    pub fn targets(&self, table: TableId) -> impl Iterator<Item = Target> {
        let attachment = self.attachments[table.index()].as_deref();
        let implementation = attachment.and_then(|a| a.implementation.as_ref());
        implementation.into_iter().flat_map(|i| {
            let bindings = i.bindings.iter().flatten();
            bindings.filter_map(|b| self.profiles[i.profile.index()].target(*b))
        })
    }

    /// Replaces the parts of an entry that are stored outside of its table (target, meter, note), and returns the
    /// former parts. The target must exist.
    pub fn attach(&mut self, table: TableId, entry: u32, new: Attached) -> Attached {
        let former = self.attached(table, entry);
        let notes = &mut self.notes[table.index()];
        match new.note {
            Some(note) => notes.insert(entry, note),
            None => notes.remove(&entry),
        };
        let Some(attachment) = &mut self.attachments[table.index()] else {
            return former;
        };
        if let Some(meter) = attachment.meter {
            let cell = new.meter.map(|meter| *meter);
            self.meters[meter.index()].replace(entry.into(), cell);
        }
        if let Some(implementation) = &mut attachment.implementation {
            let profile = &mut self.profiles[implementation.profile.index()];
            let bindings = &mut implementation.bindings;
            let at = entry as usize;
            if bindings.len() <= at {
                bindings.resize(at + 1, None);
            }
            if let Some(binding) = bindings[at].take() {
                profile.release(binding);
            }
            bindings[at] = new.target.and_then(|t| profile.bind(&t, &self.ports));
            forget_last(bindings, Option::is_none);
        }
        former
    }

    /// Returns an action profile with its members and groups.
    pub fn profile(&self, profile: ActionProfileId) -> &Profile {
        &self.profiles[profile.index()]
    }

    /// Sets the action that a member runs, or removes the member if `call` is `None`. Returns the member's former
    /// action.
    pub fn put_member(
        &mut self,
        profile: ActionProfileId,
        member_id: u32,
        call: Option<ActionCall>,
    ) -> Option<ActionCall> {
        self.profiles[profile.index()].put_member(member_id, call)
    }

    /// Sets a group, whose members must exist, or removes it if `contents` is `None`. Returns the group's former
    /// contents.
    pub fn put_group(
        &mut self,
        profile: ActionProfileId,
        group_id: u32,
        contents: Option<GroupContents>,
    ) -> Option<GroupContents> {
        self.profiles[profile.index()].put_group(group_id, contents, &self.ports)
    }

    /// Returns the states of the ports.
    pub fn ports(&self) -> &PortStates {
        &self.ports
    }

    /// Sets whether a port is up, both for action profile members that watch the port and in registers with
    /// [`ir::Register::port_state`].
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        self.ports.set(port, up);
        for profile in &mut self.profiles {
            profile.refresh(Some(port), &self.ports);
        }
        for (declared, cells) in self.program.registers.iter().zip(&mut self.registers) {
            if declared.port_state {
                write_port_state(cells, declared.width, port, up);
            }
        }
    }

    /// Sets the states of all ports.
    pub fn set_ports(&mut self, ports: PortStates) {
        self.ports = ports;
        for profile in &mut self.profiles {
            profile.refresh(None, &self.ports);
        }
        self.write_port_states();
    }

    fn write_port_states(&mut self) {
        let (most, exceptions) = self.ports.most_and_exceptions();
        for (declared, cells) in self.program.registers.iter().zip(&mut self.registers) {
            if !declared.port_state {
                continue;
            }
            let value = if most {
                Bits::ones(declared.width)
            } else {
                Bits::zero(declared.width)
            };
            cells.fill(value.limbs());
            for &port in exceptions {
                write_port_state(cells, declared.width, port, !most);
            }
        }
    }

    /// Returns a table with its entries.
    pub fn table(&self, table: TableId) -> &Table {
        &self.tables[table.index()]
    }

    /// Does a part of the work that table updates have postponed, such as releasing memory. Returns true if work
    /// remains.
    pub fn tidy(&mut self) -> bool {
        let mut more = false;
        for table in &mut self.tables {
            more |= table.tidy();
        }
        more
    }

    /// Returns a table with its entries, for changes.
    pub fn table_mut(&mut self, table: TableId) -> &mut Table {
        &mut self.tables[table.index()]
    }

    /// Returns the limbs (64-bit words) of a register's cell. An index beyond the end yields zeros, and is counted.
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

    /// Writes a register's cell. `value` contains its limbs (64-bit words), with zeros in unused high bits. An index
    /// beyond the end is only counted.
    #[inline]
    pub fn register_write(&mut self, register: RegisterId, index: u64, value: &[u64]) {
        match self.registers[register.index()].get_mut(index) {
            Some(cell) => cell.copy_from_slice(&value[..cell.len()]),
            None => self.out_of_range.registers += 1,
        }
    }

    /// Returns the value of a register's cell, or `None` beyond the end, which is not counted.
    pub fn register_cell(&self, register: RegisterId, index: u64) -> Option<Bits> {
        let width = self.program.registers[register.index()].width;
        let cell = self.registers[register.index()].get(index)?;
        Some(Bits::from_limbs(width, cell))
    }

    /// Counts a packet in a counter's cell. An index beyond the end is counted as out of range.
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

    /// Returns the limbs of a register's cells, one cell after the other, and the number of limbs of a cell, for
    /// executors that access cells directly. The list of limbs is empty if the register is so large that its cells are
    /// stored sparsely.
    pub fn register_limbs_mut(&mut self, register: RegisterId) -> (&mut [u64], usize) {
        self.registers[register.index()].limbs_mut()
    }

    /// Returns the limbs of an indexed counter's cells, two for each (packets, bytes), like
    /// [`Runtime::register_limbs_mut`].
    pub fn counter_limbs_mut(&mut self, counter: CounterId) -> (&mut [u64], usize) {
        self.counters[counter.index()].limbs_mut()
    }

    /// Sets all cells of a register to a value, and returns the former cells.
    pub fn fill_register(&mut self, register: RegisterId, value: &Bits) -> Cells {
        let cells = &mut self.registers[register.index()];
        let former = cells.clone();
        cells.fill(value.limbs());
        former
    }

    /// Replaces all cells of a register, to undo [`Runtime::fill_register`] with its result.
    pub fn replace_register_cells(&mut self, register: RegisterId, cells: Cells) {
        self.registers[register.index()] = cells;
    }

    /// Returns at most `most` cells of a register that are not zero, from index `from` on, and the index at which to
    /// continue; `None` if too many cells would have to be looked at ([`Cells::nonzero_from`]).
    pub(crate) fn registers_from(
        &self,
        register: RegisterId,
        from: u64,
        most: usize,
    ) -> Option<CellSlice<'_>> {
        self.registers[register.index()].nonzero_from(from, most)
    }

    /// Returns at most `most` cells of a counter that are not zero, from index `from` on, and the index at which to
    /// continue; `None` if too many cells would have to be looked at ([`Cells::nonzero_from`]).
    pub(crate) fn counters_from(
        &self,
        counter: CounterId,
        from: u64,
        most: usize,
    ) -> Option<CellSlice<'_>> {
        self.counters[counter.index()].nonzero_from(from, most)
    }

    /// Sets all cells of a counter to the same packets and bytes, and returns the former cells.
    pub fn fill_counter(&mut self, counter: CounterId, data: CounterData) -> Cells {
        let cells = &mut self.counters[counter.index()];
        let former = cells.clone();
        cells.fill(&[data.packets, data.bytes]);
        former
    }

    /// Replaces all cells of a counter, to undo [`Runtime::fill_counter`] with its result.
    pub fn replace_counter_cells(&mut self, counter: CounterId, cells: Cells) {
        self.counters[counter.index()] = cells;
    }

    /// Returns the packets and bytes of a counter's cell; `None` beyond the end.
    pub fn counter_cell(&self, counter: CounterId, index: u64) -> Option<CounterData> {
        let cell = self.counters[counter.index()].get(index)?;
        Some(CounterData {
            packets: cell[0],
            bytes: cell[1],
        })
    }

    /// Sets the packets and bytes of a counter's cell; returns `false` if the index is beyond the end.
    pub fn set_counter_cell(&mut self, counter: CounterId, index: u64, data: CounterData) -> bool {
        match self.counters[counter.index()].get_mut(index) {
            Some(cell) => {
                cell.copy_from_slice(&[data.packets, data.bytes]);
                true
            }
            None => false,
        }
    }

    /// Loads cells into the processor's caches ahead of their use, and changes nothing. The result means nothing; it
    /// only keeps the compiler from removing the loads.
    pub fn warm_cells(&self, cells: CellArray, indices: &[u64]) -> u64 {
        let sum = |touch: &dyn Fn(u64) -> u64| indices.iter().fold(0, |sum, &i| sum ^ touch(i));
        match cells {
            CellArray::Register(id) => sum(&|index| self.registers[id.index()].touch(index)),
            CellArray::Counter(id) => sum(&|index| self.counters[id.index()].touch(index)),
            CellArray::Meter(id) => self.meters[id.index()].load(indices),
        }
    }

    /// Marks a packet in a meter's cell, counts it, and returns its colour: 0 green, 1 yellow, 2 red. A cell without a
    /// configuration or out of range marks it green.
    #[inline]
    pub fn meter_execute(
        &mut self,
        meter: MeterId,
        index: u64,
        packet_bytes: usize,
        now_ps: Time,
    ) -> u8 {
        let array = &mut self.meters[meter.index()];
        if index >= array.size() {
            self.out_of_range.meters += 1;
            return 0;
        }
        array.mark(index, packet_bytes, now_ps)
    }

    /// Returns a meter's cell; `None` if it has no configuration.
    pub fn meter_cell(&self, meter: MeterId, index: u64) -> Option<&Meter> {
        self.meters[meter.index()].cell(index)
    }

    /// Returns the configurations of those of a meter's `most` cells from index `from` on that have one, and the
    /// index at which to continue, `None` at the end ([`MeterArray::configured_from`]).
    pub(crate) fn meters_from(
        &self,
        meter: MeterId,
        from: u64,
        most: usize,
    ) -> (Vec<(u64, MeterConfig)>, Option<u64>) {
        self.meters[meter.index()].configured_from(from, most)
    }

    /// Returns the configured cells of a meter, each with its index, in ascending order.
    pub fn configured_meters(&self, meter: MeterId) -> impl Iterator<Item = (u64, &Meter)> {
        self.meters[meter.index()].configured()
    }

    /// Replaces a meter's cell by `cell` with its present fill of the buckets, or removes it if `cell` is `None`.
    /// Returns the former cell, or `None` if it was not configured.
    pub fn replace_meter(
        &mut self,
        meter: MeterId,
        index: u64,
        cell: Option<Meter>,
    ) -> Option<Meter> {
        self.meters[meter.index()].replace(index, cell)
    }

    /// Removes all cells of a meter. Returns those that were configured, each with its index.
    pub fn clear_meters(&mut self, meter: MeterId) -> Vec<(u64, Meter)> {
        self.meters[meter.index()].clear()
    }

    /// Draws a random number between `low` and `high`, both included; `low` if the interval is empty.
    #[inline]
    pub fn random(&mut self, low: u64, high: u64) -> u64 {
        self.random.between(low, high)
    }

    /// Queues a digest message for the controller, given as the limbs (64-bit words) of each member in turn.
    pub fn digest(&mut self, digest: DigestId, values: &[u64]) {
        self.digests.push(digest, values, self.now_ps);
    }

    /// Returns the queues of digest messages for the control plane, for changes.
    pub fn digests_mut(&mut self) -> &mut DigestQueue {
        &mut self.digests
    }

    /// Returns the queues of digest messages for the control plane.
    pub fn digests(&self) -> &DigestQueue {
        &self.digests
    }

    /// Starts the idle timer of an entry, or stops it if the entry has no timeout.
    pub(crate) fn start_idle_timer(&mut self, table: TableId, entry: u32) {
        let contents = &self.tables[table.index()];
        if let Some(last_hit_ps) = contents.last_hit_ps(entry)
            && let Some(installed) = contents.entry(entry)
        {
            let activity = Activity {
                last_hit_ps,
                timeout_ns: installed.idle_timeout_ns,
            };
            let key = (self.program.tables[table.index()].id, installed.sequence);
            self.idle_timers.set(key, entry, activity);
        }
    }

    /// Stops the idle timer of an entry that is about to be removed.
    pub(crate) fn stop_idle_timer(&mut self, table: TableId, entry: u32) {
        let contents = &self.tables[table.index()];
        if contents.last_hit_ps(entry).is_some()
            && let Some(installed) = contents.entry(entry)
            && installed.idle_timeout_ns != 0
        {
            let id = self.program.tables[table.index()].id;
            self.idle_timers.remove((id, installed.sequence));
        }
    }

    /// Processes at most `most` of the idle timers that have expired at the present time. Returns true if idle entries
    /// wait for [`Runtime::take_idle`].
    pub fn run_idle_timers(&mut self, most: usize) -> bool {
        let (program, tables) = (&self.program, &self.tables);
        let of = |key, entry| activity(program, tables, key, entry);
        self.idle_timers.run(self.now_ps, most, of);
        self.idle_timers.has_idle()
    }

    /// Returns at most `most` entries that became idle, as table and entry number, in the order in which they became
    /// idle, and restarts their timeouts. The entries stay in their tables; entries deleted in the meantime are left
    /// out.
    pub fn take_idle(&mut self, most: usize) -> Vec<(TableId, u32)> {
        let (program, tables) = (&self.program, &self.tables);
        let of = |key, entry| activity(program, tables, key, entry);
        let taken = self.idle_timers.take(self.now_ps, most, of).into_iter();
        taken
            .filter_map(|(key, entry)| Some((ids::table(program, key.0)?, entry)))
            .collect()
    }

    /// Returns true if idle entries wait, and [`Runtime::announce_idle`] was not called since entries were last taken.
    pub fn has_unannounced_idle(&self) -> bool {
        self.idle_timers.is_unannounced()
    }

    /// Records that the controller is being told that idle entries wait.
    pub fn announce_idle(&mut self) {
        self.idle_timers.announce();
    }

    /// Returns the time at which the next idle timer expires, or `None` if no timer runs.
    pub fn next_idle_ps(&self) -> Option<Time> {
        self.idle_timers.next_ps()
    }

    /// Returns the earliest time at which a digest list may have to be sent, or an entry become idle; `None` if
    /// neither can happen. An entry that is hit in the meantime will become idle later.
    pub fn next_deadline_ps(&self) -> Option<Time> {
        let due = [self.idle_timers.next_ps(), self.digests.due_ps()];
        due.into_iter().flatten().min()
    }

    /// Returns true if a value set has a member that matches a key, given as the limbs (64-bit words) of each key
    /// field in turn.
    #[inline]
    pub fn value_set_contains(&self, value_set: ValueSetId, key: &[u64]) -> bool {
        self.value_sets[value_set.index()].contains(key)
    }

    /// Returns the members of a value set.
    pub fn value_set(&self, value_set: ValueSetId) -> &ValueSet {
        &self.value_sets[value_set.index()]
    }

    /// Returns the members of a value set, for changes.
    pub fn value_set_mut(&mut self, value_set: ValueSetId) -> &mut ValueSet {
        &mut self.value_sets[value_set.index()]
    }
}

/// Writes whether a port is up to a register of port states: to bit `port % width` of cell `port / width`, if the
/// register has that cell.
fn write_port_state(cells: &mut Cells, width: u32, port: u32, up: bool) {
    let place = port.checked_div(width).zip(port.checked_rem(width));
    if let Some((cell, bit)) = place
        && let Some(limbs) = cells.get_mut(cell.into())
    {
        let limb = &mut limbs[bit as usize / 64];
        *limb = *limb & !(1 << (bit % 64)) | u64::from(up) << (bit % 64);
    }
}

/// Returns the time of an entry's last hit and its idle timeout; `None` if the entry no longer exists. An entry that
/// was inserted later under the same number is another one.
fn activity(program: &Program, tables: &[Table], key: EntryKey, entry: u32) -> Option<Activity> {
    let table = &tables[ids::table(program, key.0)?.index()];
    let installed = table.entry(entry)?;
    let last_hit_ps = table.last_hit_ps(entry)?;
    (installed.sequence == key.1).then_some(Activity {
        last_hit_ps,
        timeout_ns: installed.idle_timeout_ns,
    })
}

fn attachment(program: &Program, table: &ir::Table) -> Option<Box<Attachment>> {
    if table.direct_meter.is_none() && table.implementation.is_none() {
        return None;
    }
    let implementation = table.implementation;
    Some(Box::new(Attachment {
        meter: table.direct_meter,
        implementation: implementation.map(|p| Implementation::new(program, table, p)),
    }))
}
