//! `WriteRequest`: from bytes to updates.

use crate::protobuf::{Fields, NotPlain, once};
use crate::tables::{PlainKey, PlainTable, PlainTables, value};
use engine::control::{Entity, Entry, Operation, Update};
use ir::{ActionCall, ActionId, Bits, KeyMatch, MatchKind};

/// A `p4.v1.WriteRequest` whose updates have not been looked at yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteRequest<'a> {
    /// `device_id`.
    pub device_id: u64,
    /// `role_id`, which is deprecated.
    pub role_id: u64,
    /// `role`.
    pub role: &'a str,
    /// `election_id`, if it is set.
    pub election_id: Option<u128>,
    /// The number of the atomicity.
    pub atomicity: u64,
    updates: Vec<&'a [u8]>,
}

impl<'a> WriteRequest<'a> {
    /// Takes a request apart.
    pub fn parse(data: &'a [u8]) -> Result<WriteRequest<'a>, NotPlain> {
        let (mut device_id, mut role_id, mut role) = (None, None, None);
        let (mut election_id, mut atomicity) = (None, None);
        let mut updates = Vec::new();
        for field in Fields::new(data) {
            let (number, field) = field?;
            match number {
                1 => once(&mut device_id, field.u64()?)?,
                2 => once(&mut role_id, field.u64()?)?,
                3 => once(&mut election_id, election(field.bytes()?)?)?,
                4 => updates.push(field.bytes()?),
                5 => once(&mut atomicity, field.u64()?)?,
                6 => once(
                    &mut role,
                    std::str::from_utf8(field.bytes()?).map_err(|_| NotPlain)?,
                )?,
                _ => return Err(NotPlain),
            }
        }
        Ok(WriteRequest {
            device_id: device_id.unwrap_or(0),
            role_id: role_id.unwrap_or(0),
            role: role.unwrap_or(""),
            election_id,
            atomicity: atomicity.unwrap_or(0),
            updates,
        })
    }

    /// How many updates there are.
    pub fn len(&self) -> usize {
        self.updates.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// The updates, if all are plain.
    pub fn updates(&self, tables: &PlainTables) -> Result<Vec<Update>, NotPlain> {
        let mut parts = Parts::default();
        let updates = self.updates.iter();
        updates
            .map(|data| update(tables, data, &mut parts))
            .collect()
    }
}

fn election(data: &[u8]) -> Result<u128, NotPlain> {
    let (mut high, mut low) = (None, None);
    for field in Fields::new(data) {
        match field? {
            (1, field) => once(&mut high, field.u64()?)?,
            (2, field) => once(&mut low, field.u64()?)?,
            _ => return Err(NotPlain),
        }
    }
    Ok(u128::from(high.unwrap_or(0)) << 64 | u128::from(low.unwrap_or(0)))
}

/// What an entry is made of, as it was sent; kept from one update to the next for its memory.
#[derive(Default)]
struct Parts<'a> {
    /// Field id and contents of each match.
    matches: Vec<(u32, Match<'a>)>,
    /// Id and value of each argument.
    args: Vec<(u32, &'a [u8])>,
}

#[derive(Clone, Copy)]
enum Match<'a> {
    Exact(&'a [u8]),
    Ternary(&'a [u8], &'a [u8]),
    Lpm(&'a [u8], i32),
    Range(&'a [u8], &'a [u8]),
    Optional(&'a [u8]),
}

fn update<'a>(
    tables: &PlainTables,
    data: &'a [u8],
    parts: &mut Parts<'a>,
) -> Result<Update, NotPlain> {
    let (mut kind, mut entity) = (None, None);
    for field in Fields::new(data) {
        match field? {
            (1, field) => once(&mut kind, field.u64()?)?,
            (2, field) => once(&mut entity, field.bytes()?)?,
            _ => return Err(NotPlain),
        }
    }
    let operation = match kind {
        Some(1) => Operation::Insert,
        Some(2) => Operation::Modify,
        Some(3) => Operation::Delete,
        _ => return Err(NotPlain),
    };
    let mut entry = None;
    for field in Fields::new(entity.ok_or(NotPlain)?) {
        match field? {
            (2, field) => once(&mut entry, field.bytes()?)?,
            _ => return Err(NotPlain),
        }
    }
    let entity = table_entry(tables, operation, entry.ok_or(NotPlain)?, parts)?;
    Ok(Update { operation, entity })
}

fn table_entry<'a>(
    tables: &PlainTables,
    operation: Operation,
    data: &'a [u8],
    parts: &mut Parts<'a>,
) -> Result<Entity, NotPlain> {
    parts.matches.clear();
    parts.args.clear();
    let (mut table_id, mut action_id, mut priority) = (None, None, None);
    for field in Fields::new(data) {
        match field? {
            (1, field) => once(&mut table_id, field.u32()?)?,
            (2, field) => parts.matches.push(field_match(field.bytes()?)?),
            (3, field) => once(
                &mut action_id,
                table_action(field.bytes()?, &mut parts.args)?,
            )?,
            (4, field) => once(&mut priority, field.natural()?)?,
            // Said to be what they are if nothing is said.
            (5 | 8 | 9 | 13, field) if field.u64()? == 0 => {}
            (11, field) if field.bytes()?.is_empty() => {}
            _ => return Err(NotPlain),
        }
    }
    let table = tables.get(table_id.ok_or(NotPlain)?)?;
    let priority = priority.unwrap_or(0);
    if (priority > 0) != table.needs_priority {
        return Err(NotPlain);
    }
    let matches = key_matches(table, &parts.matches)?;
    // A delete names the entry; what it runs does not matter.
    let (action, args) = match (operation, action_id) {
        (Operation::Delete, _) => (ActionId(0), Vec::new()),
        (_, None) => return Err(NotPlain),
        (_, Some(id)) => arguments(table, id, &parts.args)?,
    };
    Ok(Entity::TableEntry {
        table: table.table,
        entry: Entry::new(matches, priority, ActionCall { action, args }),
    })
}

fn field_match(data: &[u8]) -> Result<(u32, Match<'_>), NotPlain> {
    let (mut id, mut found) = (None, None);
    for field in Fields::new(data) {
        let (number, field) = field?;
        match number {
            1 => once(&mut id, field.u32()?)?,
            2 => once(&mut found, Match::Exact(one(field.bytes()?)?))?,
            3 => {
                let (value, mask) = two(field.bytes()?)?;
                once(&mut found, Match::Ternary(value, mask))?;
            }
            4 => once(&mut found, lpm(field.bytes()?)?)?,
            6 => {
                let (low, high) = two(field.bytes()?)?;
                once(&mut found, Match::Range(low, high))?;
            }
            7 => once(&mut found, Match::Optional(one(field.bytes()?)?))?,
            _ => return Err(NotPlain),
        }
    }
    Ok((id.ok_or(NotPlain)?, found.ok_or(NotPlain)?))
}

/// A message of one byte string.
fn one(data: &[u8]) -> Result<&[u8], NotPlain> {
    let mut value = None;
    for field in Fields::new(data) {
        match field? {
            (1, field) => once(&mut value, field.bytes()?)?,
            _ => return Err(NotPlain),
        }
    }
    value.ok_or(NotPlain)
}

/// A message of two byte strings.
fn two(data: &[u8]) -> Result<(&[u8], &[u8]), NotPlain> {
    let (mut first, mut second) = (None, None);
    for field in Fields::new(data) {
        match field? {
            (1, field) => once(&mut first, field.bytes()?)?,
            (2, field) => once(&mut second, field.bytes()?)?,
            _ => return Err(NotPlain),
        }
    }
    Ok((first.ok_or(NotPlain)?, second.ok_or(NotPlain)?))
}

fn lpm(data: &[u8]) -> Result<Match<'_>, NotPlain> {
    let (mut value, mut prefix_len) = (None, None);
    for field in Fields::new(data) {
        match field? {
            (1, field) => once(&mut value, field.bytes()?)?,
            (2, field) => once(&mut prefix_len, field.natural()?)?,
            _ => return Err(NotPlain),
        }
    }
    Ok(Match::Lpm(
        value.ok_or(NotPlain)?,
        prefix_len.ok_or(NotPlain)?,
    ))
}

/// The id of a `TableAction`'s action; its arguments are appended to `args`.
fn table_action<'a>(data: &'a [u8], args: &mut Vec<(u32, &'a [u8])>) -> Result<u32, NotPlain> {
    let mut action = None;
    for field in Fields::new(data) {
        match field? {
            (1, field) => once(&mut action, field.bytes()?)?,
            _ => return Err(NotPlain),
        }
    }
    let mut id = None;
    for field in Fields::new(action.ok_or(NotPlain)?) {
        match field? {
            (1, field) => once(&mut id, field.u32()?)?,
            (4, field) => args.push(param(field.bytes()?)?),
            _ => return Err(NotPlain),
        }
    }
    id.ok_or(NotPlain)
}

fn param(data: &[u8]) -> Result<(u32, &[u8]), NotPlain> {
    let (mut id, mut value) = (None, None);
    for field in Fields::new(data) {
        match field? {
            (2, field) => once(&mut id, field.u32()?)?,
            (3, field) => once(&mut value, field.bytes()?)?,
            _ => return Err(NotPlain),
        }
    }
    Ok((id.ok_or(NotPlain)?, value.ok_or(NotPlain)?))
}

fn key_matches(table: &PlainTable, given: &[(u32, Match<'_>)]) -> Result<Vec<KeyMatch>, NotPlain> {
    let mut used = 0;
    let matches = table.keys.iter().map(|key| {
        let mut of_key = given.iter().filter(|(id, _)| *id == key.id);
        let found = of_key.next();
        if of_key.next().is_some() {
            return Err(NotPlain);
        }
        used += usize::from(found.is_some());
        key_match(key, found.map(|(_, found)| *found))
    });
    let matches = matches.collect::<Result<_, _>>()?;
    if used == given.len() {
        Ok(matches)
    } else {
        Err(NotPlain)
    }
}

/// The match of one field, in the only form that P4Runtime allows it; a don't-care is not given at all.
fn key_match(key: &PlainKey, given: Option<Match<'_>>) -> Result<KeyMatch, NotPlain> {
    let width = key.width;
    let zero = || Bits::zero(width);
    let Some(given) = given else {
        return match key.kind {
            MatchKind::Lpm => Ok(KeyMatch::Lpm {
                value: zero(),
                prefix_len: 0,
            }),
            MatchKind::Ternary => Ok(KeyMatch::Ternary {
                value: zero(),
                mask: zero(),
            }),
            MatchKind::Range => Ok(KeyMatch::Range {
                low: zero(),
                high: Bits::ones(width),
            }),
            MatchKind::Optional => Ok(KeyMatch::Optional(None)),
            MatchKind::Exact | MatchKind::Selector => Err(NotPlain),
        };
    };
    let plain = |condition: bool| if condition { Ok(()) } else { Err(NotPlain) };
    match (key.kind, given) {
        (MatchKind::Exact, Match::Exact(bytes)) => Ok(KeyMatch::Exact(value(width, bytes)?)),
        (MatchKind::Optional, Match::Optional(bytes)) => {
            Ok(KeyMatch::Optional(Some(value(width, bytes)?)))
        }
        (MatchKind::Lpm, Match::Lpm(bytes, prefix_len)) => {
            let (value, prefix_len) = (value(width, bytes)?, prefix_len as u32);
            plain(prefix_len > 0 && prefix_len <= width)?;
            plain(value.and(&Bits::prefix_mask(width, prefix_len)) == value)?;
            Ok(KeyMatch::Lpm { value, prefix_len })
        }
        (MatchKind::Ternary, Match::Ternary(bytes, mask)) => {
            let (value, mask) = (value(width, bytes)?, self::value(width, mask)?);
            plain(!mask.is_zero() && value.and(&mask) == value)?;
            Ok(KeyMatch::Ternary { value, mask })
        }
        (MatchKind::Range, Match::Range(low, high)) => {
            let (low, high) = (value(width, low)?, value(width, high)?);
            plain(low.ucmp(&high).is_le())?;
            plain(!low.is_zero() || high != Bits::ones(width))?;
            Ok(KeyMatch::Range { low, high })
        }
        _ => Err(NotPlain),
    }
}

fn arguments(
    table: &PlainTable,
    id: u32,
    given: &[(u32, &[u8])],
) -> Result<(ActionId, Vec<Bits>), NotPlain> {
    let action = table.action(id)?;
    // As many as there are parameters, and one for each: so none is given twice.
    if given.len() != action.params.len() {
        return Err(NotPlain);
    }
    let args = action.params.iter().map(|&(id, width)| {
        let (_, bytes) = given
            .iter()
            .find(|(given, _)| *given == id)
            .ok_or(NotPlain)?;
        value(width, bytes)
    });
    Ok((action.action, args.collect::<Result<_, _>>()?))
}
