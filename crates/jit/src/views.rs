//! Tables, registers and counters as machine code sees them that reaches them in place: a fixed layout of pointers into the engine's structures.
//!
//! A [`TableView`] is taken from its table when a burst begins and given up when the burst is done or stops. In between nothing
//! but the executor has the switch, and packets do not change tables, but for what counts hits; entries come and go between bursts only. Which
//! tables are looked up in place, [`crate::analysis`] says. It does not know the generated code, which may read
//! the slices of [`engine::table::InPlace`].

use crate::analysis::tables::{InPlaceTable, MAX_VIEWS};
use engine::Runtime;
use engine::runtime::CounterData;
use engine::table::lpm32::{Places, Root};
use engine::table::{InPlace, InPlaceMatcher, Table};
use ir::{CounterId, Program, RegisterId};
use smallvec::SmallVec;
use std::ptr::{null, null_mut};

/// The addresses of the parts of a table, for lookups by machine code.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableView {
    /// Buckets of the hash map, if part of the key leads through one; null if the table cannot be looked up in place now.
    pub buckets: *const u64,
    /// Number of buckets minus one.
    pub bucket_mask: u64,
    /// For each value of the key, the entry, if the key is an index; null if the table cannot be looked up in
    /// place now.
    pub direct: *const u32,
    /// The number of elements of `direct`.
    pub direct_count: u64,
    /// The roots of the tries, if a field is matched by prefix; never null then.
    pub roots: *const Root,
    /// The blocks of the tries.
    pub blocks: *const Places,
    /// For each entry, the number of its record.
    pub record_of_entry: *const u32,
    /// The records.
    pub records: *const u64,
    /// For each entry, the counter of its hits; null if hits are not counted.
    pub counters: *mut CounterData,
    /// The number of roots.
    pub root_count: u64,
    /// The number of blocks.
    pub block_count: u64,
    /// The number of entries, counting the one with number 0.
    pub entry_count: u64,
    /// The number of records.
    pub record_count: u64,
}

/// A root under which no lookup in place succeeds.
static NO_ROOT: Root = Root::EMPTY;

impl TableView {
    /// The view of a table that cannot be looked up in place now.
    const UNREADY: TableView = TableView {
        buckets: null(),
        bucket_mask: 0,
        direct: null(),
        direct_count: 0,
        roots: &raw const NO_ROOT,
        blocks: null(),
        record_of_entry: null(),
        records: null(),
        counters: null_mut(),
        root_count: 1,
        block_count: 0,
        entry_count: 0,
        record_count: 0,
    };

    /// Makes a view of a table in its present state. The view is [`TableView::UNREADY`] if the table's
    /// present structures are not those that the code generated for `expected` can look keys up in.
    fn new(table: &mut Table, expected: &InPlaceTable) -> TableView {
        let counters = match expected.counts {
            true => table.counters_mut().as_mut_ptr(),
            false => null_mut(),
        };
        let is_expected = |parts: &InPlace<'_>| {
            (parts.stride, parts.counts) == (expected.stride, expected.counts)
        };
        let Some(parts) = table.in_place().filter(is_expected) else {
            return TableView::UNREADY;
        };
        let (exact, prefixes) = match (parts.matcher, expected.prefix) {
            (InPlaceMatcher::Keyless, None) => (None, None),
            (InPlaceMatcher::Exact(buckets), None) => (Some(buckets), None),
            (InPlaceMatcher::Direct(_), None) if expected.is_direct => (None, None),
            (InPlaceMatcher::Prefixes { exact, prefixes }, Some(_)) => (exact, Some(prefixes)),
            _ => return TableView::UNREADY,
        };
        if exact.map(|b| b.limbs) != expected.is_hashed().then_some(expected.limbs) {
            return TableView::UNREADY;
        }
        let mut view = TableView {
            record_of_entry: parts.record_of_entry.as_ptr(),
            records: parts.records.as_ptr(),
            counters,
            entry_count: parts.record_of_entry.len() as u64,
            record_count: (parts.records.len() / parts.stride) as u64,
            ..TableView::UNREADY
        };
        if let InPlaceMatcher::Direct(entries) = parts.matcher {
            view.direct = entries.as_ptr();
            view.direct_count = entries.len() as u64;
        }
        if let Some(buckets) = exact {
            view.buckets = buckets.buckets.as_ptr();
            view.bucket_mask = buckets.mask as u64;
        }
        if let Some(prefixes) = prefixes.filter(|p| !p.roots.is_empty()) {
            view.roots = prefixes.roots.as_ptr();
            view.root_count = prefixes.roots.len() as u64;
            view.blocks = prefixes.blocks.as_ptr();
            view.block_count = prefixes.blocks.len() as u64;
        }
        view
    }
}

/// Views of a program's tables, in the order of [`InPlaceTable`]s.
pub(crate) type Views = SmallVec<[TableView; MAX_VIEWS]>;

/// Appends to `views` a view of each of `tables` in its present state.
#[inline]
pub(crate) fn take_views(tables: &[InPlaceTable], runtime: &mut Runtime, views: &mut Views) {
    for expected in tables {
        views.push(TableView::new(runtime.table_mut(expected.table), expected));
    }
}

/// Views with which nothing is looked up in place.
struct NoViews([TableView; MAX_VIEWS]);

// SAFETY: never written, and the only memory that it points to is static and never written.
unsafe impl Sync for NoViews {}

static NO_VIEWS: NoViews = NoViews([TableView::UNREADY; MAX_VIEWS]);

/// Returns views of which none is ready, for bursts with too few packets to be worth making views of the tables.
pub(crate) fn no_views() -> *const TableView {
    NO_VIEWS.0.as_ptr()
}

/// The number of registers and counters of a program that are read and written in place at most, registers
/// first.
pub(crate) const MAX_CELLS: usize = 64;

/// The address of the cells of a register or of an indexed counter.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellsView {
    /// The first limb of the first cell.
    pub first: *mut u64,
    /// The number of cells; 0 if they do not lie one after the other. A function is called for an index
    /// beyond.
    pub count: u64,
}

impl CellsView {
    /// The view of cells that are not reached in place.
    const UNREADY: CellsView = CellsView {
        first: null_mut(),
        count: 0,
    };

    fn new(limbs: &mut [u64], stride: usize) -> CellsView {
        CellsView {
            first: limbs.as_mut_ptr(),
            count: (limbs.len() / stride.max(1)) as u64,
        }
    }
}

/// Returns the position of a register's view among [`AllCells`]; `None` if that is not below [`MAX_CELLS`].
pub(crate) fn register_view(register: RegisterId) -> Option<usize> {
    Some(register.index()).filter(|&at| at < MAX_CELLS)
}

/// Returns the position of a counter's view among [`AllCells`]; `None` if that is not below [`MAX_CELLS`].
pub(crate) fn counter_view(program: &Program, counter: CounterId) -> Option<usize> {
    Some(program.registers.len() + counter.index()).filter(|&at| at < MAX_CELLS)
}

/// Views of registers, then of counters.
pub(crate) type AllCells = SmallVec<[CellsView; MAX_CELLS]>;

/// Fills `views`, which must be empty, with a view of each register and counter in its present state, up to [`MAX_CELLS`] views.
pub(crate) fn take_cells(program: &Program, runtime: &mut Runtime, views: &mut AllCells) {
    for at in (0..program.registers.len() as u32).take(MAX_CELLS) {
        let (limbs, stride) = runtime.register_limbs_mut(RegisterId(at));
        views.push(CellsView::new(limbs, stride));
    }
    let room = MAX_CELLS - views.len();
    for at in (0..program.counters.len() as u32).take(room) {
        let (limbs, stride) = runtime.counter_limbs_mut(CounterId(at));
        views.push(CellsView::new(limbs, stride));
    }
}

/// Views with which no cell is reached in place.
struct NoCells([CellsView; MAX_CELLS]);

// SAFETY: never written, and without a pointer to anything.
unsafe impl Sync for NoCells {}

static NO_CELLS: NoCells = NoCells([CellsView::UNREADY; MAX_CELLS]);

/// Returns views without cells, for bursts with too few packets to be worth making views of cells.
pub(crate) fn no_cells() -> *const CellsView {
    NO_CELLS.0.as_ptr()
}
