//! Fills tables by the names in the program. The names are ours, so a wrong name is reported as an error of the benchmark.

use engine::Switch;
use engine::control::{Entity, Entry, Operation, Update};
use ir::{ActionCall, ActionId, Bits, KeyMatch, RegisterId, TableId};

/// Declares in the program's register `domain_ports` that these ports lead to switches of the same domain. The
/// program refuses packets with the domain's own headers at all other ports.
pub fn lead_to_domain(switch: &mut Switch, ports: &[u32]) -> Result<(), String> {
    let registers = &switch.program().registers;
    let at = (registers.iter().position(|r| r.name == "domain_ports"))
        .ok_or("there is no register domain_ports")?;
    for &port in ports {
        let entity = Entity::Register {
            register: RegisterId(at as u32),
            index: Some(port.into()),
            value: Bits::from_u64(1, 1),
        };
        let operation = Operation::Modify;
        switch
            .write(Update { operation, entity })
            .map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// The table into which entries are inserted, and the action that they call.
#[derive(Clone, Debug)]
pub struct Target {
    table: TableId,
    action: ActionId,
    key_widths: Vec<u32>,
    param_widths: Vec<u32>,
}

/// A match on a key field; its width is that of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Exactly this value.
    Exact(u128),
    /// A prefix and its length.
    Lpm(u128, u32),
    /// A value and its mask.
    Ternary(u128, u128),
    /// This value, or any if `None`.
    Optional(Option<u128>),
    /// The lowest and the highest value.
    Range(u128, u128),
}

impl Match {
    fn of_width(self, width: u32) -> KeyMatch {
        let bits = |value| Bits::from_u128(width, value);
        match self {
            Match::Exact(value) => KeyMatch::Value(bits(value)),
            Match::Lpm(value, prefix_len) => KeyMatch::Prefix {
                value: bits(value).and(&Bits::prefix_mask(width, prefix_len)),
                prefix_len,
            },
            Match::Ternary(value, mask) => KeyMatch::Masked {
                value: bits(value & mask),
                mask: bits(mask),
            },
            Match::Optional(value) => {
                value.map_or(KeyMatch::Any, |value| KeyMatch::Value(bits(value)))
            }
            Match::Range(low, high) => KeyMatch::Range {
                low: bits(low),
                high: bits(high),
            },
        }
    }
}

impl Target {
    /// Finds a table and one of its actions by their names, or by the last parts of their names, separated by dots.
    /// Fails if one does not exist.
    pub fn new(switch: &Switch, table: &str, action: &str) -> Result<Target, String> {
        let program = switch.program();
        let is = |name: &str, wanted: &str| {
            name == wanted
                || name
                    .strip_suffix(wanted)
                    .is_some_and(|rest| rest.ends_with('.'))
        };
        let (at, declared) = (program.tables.iter().enumerate())
            .find(|(_, t)| is(&t.name, table))
            .ok_or_else(|| format!("there is no table {table}"))?;
        let action = (declared.actions.iter())
            .map(|a| a.action)
            .find(|a| is(&program.actions[a.index()].name, action))
            .ok_or_else(|| format!("table {table} has no action {action}"))?;
        let params = &program.actions[action.index()].params;
        Ok(Target {
            table: TableId(at as u32),
            action,
            key_widths: declared.keys.iter().map(|k| k.width).collect(),
            param_widths: (params.iter())
                .map(|p| program.slots[p.slot.index()].width)
                .collect(),
        })
    }

    /// Returns the id of the table into which entries are inserted.
    pub fn table(&self) -> TableId {
        self.table
    }

    /// Returns the id of the action that was found.
    pub fn action(&self) -> ActionId {
        self.action
    }

    /// Makes an entry for the table; matches and arguments get the declared widths.
    pub fn entry(&self, matches: &[Match], priority: i32, args: &[u128]) -> Entry {
        let matches = (matches.iter().zip(&self.key_widths))
            .map(|(m, &width)| m.of_width(width))
            .collect();
        let args = (args.iter().zip(&self.param_widths))
            .map(|(&value, &width)| Bits::from_u128(width, value))
            .collect();
        self.wide_entry(matches, priority, args)
    }

    /// Makes an entry for the table whose matches and arguments may be wider than 128 bits.
    pub fn wide_entry(&self, matches: Vec<KeyMatch>, priority: i32, args: Vec<Bits>) -> Entry {
        let action = self.action;
        Entry::new(matches, priority, ActionCall { action, args })
    }

    /// Inserts an entry into the table of a switch. Fails if the switch refuses it.
    pub fn insert(
        &self,
        switch: &mut Switch,
        matches: &[Match],
        priority: i32,
        args: &[u128],
    ) -> Result<(), String> {
        switch
            .insert_entry(self.table, self.entry(matches, priority, args))
            .map_err(|e| e.to_string())
    }
}
