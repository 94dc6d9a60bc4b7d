//! Which tables machine code looks up in place, and which are prefetched.

use super::reads_one_of;
use super::usage::Usage;
use engine::runtime::CellArray;
use engine::table::{KeyShape, Packing, is_direct};
use ir::{Effect, Expr, Key, Pipeline, Program, SlotId, StmtKind, TableId};

/// The number of tables of a program that are looked up in place at most: those declared first.
pub(crate) const MAX_VIEWS: usize = 16;

/// The largest key in limbs that is looked up in place.
const MAX_LIMBS: usize = 4;

/// The number of entries from which on a table is assumed not to lie in the processor's caches.
pub(crate) const LARGE_TABLE: usize = 1 << 14;

/// A table that machine code looks up itself, without a call, where the table's present structure allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InPlaceTable {
    /// The table.
    pub table: TableId,
    /// Number of limbs of its key, or of the packed key if it has one; zero without a key.
    pub limbs: usize,
    /// The field that is matched by prefix, if there is one.
    pub prefix: Option<PrefixField>,
    /// True if the key's value is the index of its entry.
    pub is_direct: bool,
    /// Number of limbs of a record, which holds an entry's action and arguments.
    pub stride: usize,
    /// True if a direct counter counts its hits.
    pub counts: bool,
}

/// A field matched by prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixField {
    /// Its limb in the key.
    pub limb: usize,
    /// At most 32.
    pub width: u32,
}

impl InPlaceTable {
    /// Returns true if a part of the key is looked up in a hash map.
    pub fn is_hashed(&self) -> bool {
        self.limbs > usize::from(self.prefix.is_some() || self.is_direct)
    }
}

/// Returns the tables of a program that generated code looks up without a call, in the order of their views, at most
/// [`MAX_VIEWS`].
pub(super) fn in_place(program: &Program) -> Vec<InPlaceTable> {
    let ids = (0..program.tables.len() as u32).map(TableId);
    let tables = ids.filter_map(|id| in_place_table(program, id));
    tables.take(MAX_VIEWS).collect()
}

fn in_place_table(program: &Program, id: TableId) -> Option<InPlaceTable> {
    let table = &program.tables[id.index()];
    let has_effects =
        table.direct_meter.is_some() || table.support_timeout || table.implementation.is_some();
    if has_effects {
        return None;
    }
    let (mut limbs, mut prefix) = (0, None);
    for key in &table.keys {
        if key.kind.is_prefix() && key.width <= 32 && prefix.is_none() {
            prefix = Some(PrefixField {
                limb: limbs,
                width: key.width,
            });
        } else if !key.kind.is_exact() {
            return None;
        }
        limbs += key.width.div_ceil(64) as usize;
    }
    if let Some(packing) = Packing::of_exact(&KeyShape::new(&table.keys)) {
        limbs = packing.limbs();
    }
    let arg_limbs = table.actions.iter().map(|a| {
        let params = program.actions[a.action.index()].params.iter();
        params
            .map(|p| program.slots[p.slot.index()].width.div_ceil(64) as usize)
            .sum::<usize>()
    });
    (limbs <= MAX_LIMBS).then_some(InPlaceTable {
        table: id,
        limbs,
        prefix,
        is_direct: is_direct(table),
        stride: 1 + arg_limbs.max().unwrap_or(0),
        counts: table.direct_counter.is_some(),
    })
}

/// The tables and cells that are prefetched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefetched {
    /// Tables.
    pub tables: Vec<PrefetchedTable>,
    /// Registers, counters and meters.
    pub cells: Vec<CellArray>,
    /// For each slot, true if its value comes from something that the prefetch function does not do.
    pub unknown: Vec<bool>,
}

/// A table that is worth a prefetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrefetchedTable {
    /// The table.
    pub table: TableId,
    /// Limbs of its key, as the program gives it.
    pub limbs: usize,
    /// True if the prefetch function loads the buckets of the hash map at once, instead of recording the
    /// keys.
    pub touched: bool,
    /// The arguments of its entries that are indexes of cells.
    pub links: Vec<Link>,
}

/// An argument that is the index of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The position of the action.
    pub action: u32,
    /// The argument, by its first limb.
    pub limb: usize,
    /// The number of the cells among those that are prefetched.
    pub cells: usize,
}

/// Tables with records of this many limbs are not looked up to prefetch: their entries hardly share records,
/// so that the record would have to be loaded, too.
const LINE_LIMBS: usize = 8;

/// Returns what is worth prefetching: tables that may have many entries and whose keys do not depend on other tables,
/// and large arrays of cells.
pub(super) fn prefetched(program: &Program, in_place: &[InPlaceTable]) -> Prefetched {
    let by_tables = Usage::of_actions(program).writes;
    let mut result = Prefetched::default();
    for stmt in ir::statements(program.main_control(Pipeline::INGRESS)) {
        if let Some((cells, _)) = cell_of(&stmt.kind)
            && cell_count(program, cells) >= LARGE_TABLE as u64
            && !result.cells.contains(&cells)
        {
            result.cells.push(cells);
        }
        let (id, keys) = match &stmt.kind {
            StmtKind::Apply { table, keys, .. } => (*table, keys),
            _ => continue,
        };
        let known = |t: &PrefetchedTable| t.table == id;
        if result.tables.iter().any(known) || reads_one_of(keys, &by_tables) {
            continue;
        }
        let table = &program.tables[id.index()];
        let by_hash = |k: &Key| k.kind.is_exact() || k.kind.is_prefix();
        let has_keys = !table.keys.is_empty() && table.keys.iter().all(by_hash);
        if has_keys && table.size >= LARGE_TABLE as u64 {
            result.tables.push(PrefetchedTable {
                table: id,
                limbs: KeyShape::new(&table.keys).limbs(),
                touched: false,
                links: Vec::new(),
            });
        }
    }
    result.unknown = unknown(program, in_place, &result.tables);
    for table in &mut result.tables {
        table.links = links(program, table.table, &result.cells, &result.unknown);
        let is_touched = |t: &InPlaceTable| {
            t.table == table.table && t.prefix.is_none() && t.stride < LINE_LIMBS
        };
        table.touched = table.links.is_empty() && in_place.iter().any(is_touched);
    }
    result
}

/// Returns true if the prefetch function looks up the table and runs its actions, to find what else to
/// prefetch: the table is looked up in place, counts no hits, and is not itself among `prefetched`.
pub(crate) fn runs_to_prefetch(
    in_place: &[InPlaceTable],
    prefetched: &[PrefetchedTable],
    id: TableId,
) -> bool {
    let is_quiet = |t: &InPlaceTable| t.table == id && !t.counts;
    in_place.iter().any(is_quiet) && prefetched.iter().all(|t| t.table != id)
}

/// Returns whether the function that prefetches omits a statement, as it has effects outside or takes time.
pub(crate) fn is_left_out(stmt: &StmtKind) -> bool {
    match stmt.effect() {
        Effect::None | Effect::Packet | Effect::End | Effect::Table => false,
        Effect::Slow | Effect::State | Effect::Request | Effect::Cut => true,
        Effect::Message | Effect::Check | Effect::Steps => true,
    }
}

/// Returns the array and the index of the register, counter or meter cell that a statement reads, counts in
/// or measures with; `None` for other statements.
pub(crate) fn cell_of(stmt: &StmtKind) -> Option<(CellArray, &Expr)> {
    Some(match stmt {
        StmtKind::RegisterRead {
            register, index, ..
        } => (CellArray::Register(*register), index),
        StmtKind::Count { counter, index } => (CellArray::Counter(*counter), index),
        StmtKind::MeterExecute { meter, index, .. } => (CellArray::Meter(*meter), index),
        _ => return None,
    })
}

fn cell_count(program: &Program, cells: CellArray) -> u64 {
    match cells {
        CellArray::Register(id) => program.registers[id.index()].size,
        CellArray::Counter(id) => program.counters[id.index()].size.unwrap_or(0),
        CellArray::Meter(id) => program.meters[id.index()].size.unwrap_or(0),
    }
}

fn unknown(
    program: &Program,
    in_place: &[InPlaceTable],
    prefetched: &[PrefetchedTable],
) -> Vec<bool> {
    let mut unknown = vec![false; program.slots.len()];
    for stmt in ir::statements(program.main_control(Pipeline::INGRESS)) {
        match &stmt.kind {
            kind if is_left_out(kind) => {
                (kind.destination().iter()).for_each(|dst| unknown[dst.index()] = true);
            }
            StmtKind::Apply { table, .. } if !runs_to_prefetch(in_place, prefetched, *table) => {
                for action in &program.tables[table.index()].actions {
                    let body = &program.actions[action.action.index()].body;
                    let writes = Usage::of_stmts(program, &[body]).writes;
                    (unknown.iter_mut().zip(writes)).for_each(|(slot, written)| *slot |= written);
                }
            }
            _ => {}
        }
    }
    unknown
}

/// Returns the arguments of the actions of the table `id` that are assigned to a slot which then serves as
/// the index of a cell of `cells`. Only slots that `unknown` marks are considered.
fn links(program: &Program, id: TableId, cells: &[CellArray], unknown: &[bool]) -> Vec<Link> {
    let mut links = Vec::new();
    for stmt in ir::statements(program.main_control(Pipeline::INGRESS)) {
        let Some((array, index)) = cell_of(&stmt.kind) else {
            continue;
        };
        let number = cells.iter().position(|&c| c == array);
        let (Some(cells), Some(slot)) = (number, extended_slot(index)) else {
            continue;
        };
        let actions = program.tables[id.index()].actions.iter().enumerate();
        for (position, action) in actions.filter(|_| unknown[slot.index()]) {
            let action = &program.actions[action.action.index()];
            let assigned = action.body.iter().find_map(|stmt| match &stmt.kind {
                StmtKind::Assign { dst, value } if *dst == slot => extended_slot(value),
                _ => None,
            });
            let mut limb = 0;
            for param in &action.params {
                let link = Link {
                    action: position as u32,
                    limb,
                    cells,
                };
                if Some(param.slot) == assigned && !links.contains(&link) {
                    links.push(link);
                }
                limb += program.slots[param.slot.index()].width.div_ceil(64) as usize;
            }
        }
    }
    links
}

/// Returns the slot if the expression is a slot, perhaps extended with zeros; `None` for other expressions.
fn extended_slot(expr: &Expr) -> Option<SlotId> {
    match expr {
        Expr::Slot(slot) => Some(*slot),
        Expr::ZeroExtend { a, .. } => extended_slot(a),
        _ => None,
    }
}
