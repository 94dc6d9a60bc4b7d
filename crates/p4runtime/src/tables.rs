//! The tables whose entries may be plain, as P4Info and the program agree on them.

use crate::protobuf::NotPlain;
use engine::control::ids;
use ir::{ActionId, ActionScope, Bits, MatchKind, Program, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A match field, as P4Info has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// P4Runtime id.
    pub id: u32,
    /// `exact`, `lpm`, `ternary`, `range` or `optional`.
    pub kind: String,
    /// In bits.
    pub width: u32,
}

/// An action that entries may run, as P4Info has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionInfo {
    /// P4Runtime id.
    pub id: u32,
    /// Id and width in bits of each parameter.
    pub params: Vec<(u32, u32)>,
}

/// A table that clients may write and whose values are not translated, as P4Info has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// P4Runtime id.
    pub id: u32,
    /// Match fields.
    pub fields: Vec<FieldInfo>,
    /// Actions of entries.
    pub actions: Vec<ActionInfo>,
}

/// Tables of a program by P4Runtime id. Those that P4Info and the program describe differently are not among them.
#[derive(Clone, Debug)]
pub struct PlainTables {
    pub(crate) program: Arc<Program>,
    by_id: BTreeMap<u32, PlainTable>,
}

#[derive(Clone, Debug)]
pub(crate) struct PlainTable {
    pub(crate) table: TableId,
    pub(crate) needs_priority: bool,
    /// In the program's order.
    pub(crate) keys: Vec<PlainKey>,
    /// Positions in `keys`, by ascending id.
    pub(crate) keys_by_id: Vec<usize>,
    actions: Vec<PlainAction>,
}

#[derive(Clone, Debug)]
pub(crate) struct PlainKey {
    pub(crate) id: u32,
    pub(crate) kind: MatchKind,
    pub(crate) width: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct PlainAction {
    id: u32,
    pub(crate) action: ActionId,
    /// Id and width of each parameter, in the program's order.
    pub(crate) params: Vec<(u32, u32)>,
}

impl PlainTables {
    /// The tables of a P4Info that are also the program's.
    pub fn new(program: Arc<Program>, tables: &[TableInfo]) -> PlainTables {
        let by_id = tables
            .iter()
            .filter_map(|info| Some((info.id, plain_table(&program, info)?)))
            .collect();
        PlainTables { program, by_id }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether this is one.
    pub fn has(&self, id: u32) -> bool {
        self.by_id.contains_key(&id)
    }

    pub(crate) fn get(&self, id: u32) -> Result<&PlainTable, NotPlain> {
        self.by_id.get(&id).ok_or(NotPlain)
    }
}

impl PlainTable {
    pub(crate) fn action(&self, id: u32) -> Result<&PlainAction, NotPlain> {
        self.actions.iter().find(|a| a.id == id).ok_or(NotPlain)
    }
}

/// `None` where P4Info and program differ, or the table's entries are never plain.
fn plain_table(program: &Program, info: &TableInfo) -> Option<PlainTable> {
    let table = ids::table(program, info.id)?;
    let declared = &program.tables[table.index()];
    if declared.keys.is_empty() || declared.keys.len() != info.fields.len() {
        return None;
    }
    // Their entries may say more than an action.
    if declared.implementation.is_some() || declared.direct_meter.is_some() {
        return None;
    }
    let keys = declared.keys.iter().map(|key| {
        let field = info.fields.iter().find(|field| field.id == key.id)?;
        let same = field.kind == kind_name(key.kind)? && field.width == key.width;
        same.then_some(PlainKey {
            id: key.id,
            kind: key.kind,
            width: key.width,
        })
    });
    let actions = info.actions.iter().map(|info| {
        let action = ids::action(program, info.id)?;
        let place = declared.actions.iter().find(|a| a.action == action)?;
        if place.scope == ActionScope::DefaultOnly {
            return None;
        }
        let params = &program.actions[action.index()].params;
        if params.len() != info.params.len() {
            return None;
        }
        let params = params.iter().map(|param| {
            let known = (param.id, program.slots[param.slot.index()].width);
            info.params.contains(&known).then_some(known)
        });
        Some(PlainAction {
            id: info.id,
            action,
            params: params.collect::<Option<_>>()?,
        })
    });
    let keys: Vec<PlainKey> = keys.collect::<Option<_>>()?;
    let mut keys_by_id: Vec<usize> = (0..keys.len()).collect();
    keys_by_id.sort_by_key(|&at| keys[at].id);
    Some(PlainTable {
        table,
        needs_priority: declared.needs_priority(),
        keys,
        keys_by_id,
        actions: actions.collect::<Option<_>>()?,
    })
}

/// P4Info's word in lower case.
pub(crate) fn kind_name(kind: MatchKind) -> Option<&'static str> {
    match kind {
        MatchKind::Exact => Some("exact"),
        MatchKind::Lpm => Some("lpm"),
        MatchKind::Ternary => Some("ternary"),
        MatchKind::Range => Some("range"),
        MatchKind::Optional => Some("optional"),
        MatchKind::Selector => None,
    }
}

/// A byte string's value, if it has one that fits; leading zeros do not matter.
pub(crate) fn value(width: u32, bytes: &[u8]) -> Result<Bits, NotPlain> {
    if bytes.is_empty() {
        return Err(NotPlain);
    }
    let zeros = bytes.iter().take_while(|&&b| b == 0).count();
    let significant = &bytes[zeros..];
    let bits = match significant {
        [] => 0,
        [first, rest @ ..] => rest.len() as u64 * 8 + u64::from(8 - first.leading_zeros()),
    };
    if bits > u64::from(width) {
        return Err(NotPlain);
    }
    Ok(Bits::from_be_bytes(width, significant))
}
