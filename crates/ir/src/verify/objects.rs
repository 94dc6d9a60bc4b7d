//! Invariants 1 to 19: storage, objects and tables. Knows nothing of statements.

use super::*;
use std::collections::HashSet;

/// The most bytes that one cell of an indexed counter needs.
const COUNTER_CELL_BYTES: u64 = 16;
/// The most bytes that one cell of an indexed meter needs.
const METER_CELL_BYTES: u64 = 64;

impl Verifier<'_> {
    pub(super) fn objects(&mut self) {
        self.slots();
        self.metadata();
        self.headers();
        self.error_names();
        self.names_and_ids();
        self.cells();
        self.messages();
        self.controller_headers();
        self.action_profiles();
        self.field_lists();
        self.action_params();
        for table in &self.program.tables {
            self.table(table);
        }
        self.direct_objects();
        self.implementations();
    }

    fn slots(&mut self) {
        let place = Place::new("slots", "");
        let mut limbs = 0u64;
        for (i, slot) in self.program.slots.iter().enumerate() {
            let fits = (1..=Bits::MAX_WIDTH).contains(&slot.width);
            self.check(fits, 1, place, || {
                format!("slot %{i} has {} bits", slot.width)
            });
            limbs += u64::from(slot.width.div_ceil(64));
        }
        self.check(limbs <= MAX_STATE_LIMBS, 1, place, || {
            format!("the slots have {limbs} limbs")
        });
        self.roles.taken = vec![false; self.program.slots.len()];
        self.roles.max_length = vec![None; self.program.slots.len()];
    }

    fn metadata(&mut self) {
        let place = Place::new("metadata", "");
        for (name, slot, expected) in self.program.architecture.fields() {
            let Some(width) = self.slot(slot, place) else {
                continue;
            };
            self.check(width == expected, 7, place, || {
                format!("{name} has {width} bits, not {expected}")
            });
            let taken = std::mem::replace(&mut self.roles.taken[slot.index()], true);
            self.check(!taken, 7, place, || {
                format!("{name} shares slot %{} with another field", slot.0)
            });
        }
    }

    /// Checks that neither another header nor the architecture's metadata uses a slot (invariant 5), and
    /// marks it as used. Returns its width in bits; `None` if the id is out of range.
    fn take(&mut self, slot: SlotId, place: Place<'_>) -> Option<u32> {
        let width = self.slot(slot, place)?;
        let taken = std::mem::replace(&mut self.roles.taken[slot.index()], true);
        self.check(!taken, 5, place, || {
            format!("slot %{} has another role already", slot.0)
        });
        Some(width)
    }

    fn headers(&mut self) {
        for header in &self.program.headers {
            let place = Place::new("header", &header.name);
            let valid = self.take(header.valid, place);
            self.check(valid.is_none_or(|w| w == 1), 3, place, || {
                "the validity has more than one bit".into()
            });
            let mut bits = 0u64;
            let mut varbits = 0;
            for field in &header.fields {
                let width = self.take(field.slot, place).unwrap_or(0);
                bits += u64::from(width);
                if let Some(length) = field.varbit_length {
                    varbits += 1;
                    self.varbit(length, width, place);
                }
            }
            self.check(varbits <= 1, 3, place, || "two varbits".into());
            self.check(varbits > 0 || bits.is_multiple_of(8), 4, place, || {
                format!("{bits} bits are no whole number of bytes")
            });
        }
    }

    fn varbit(&mut self, length: SlotId, max: u32, place: Place<'_>) {
        let Some(width) = self.take(length, place) else {
            return;
        };
        self.check(width == 32, 3, place, || {
            format!("the length of the varbit has {width} bits, not 32")
        });
        self.roles.max_length[length.index()] = Some(max);
    }

    fn error_names(&mut self) {
        let place = Place::new("errors", "");
        let errors = &self.program.errors;
        let core = errors.len() >= CORE_ERRORS.len()
            && errors.iter().zip(CORE_ERRORS).all(|(a, b)| a == b);
        self.check(core, 8, place, || {
            format!("the list does not begin with {CORE_ERRORS:?}")
        });
        self.check(errors.len() <= 1 << ERROR_WIDTH, 8, place, || {
            format!("{} errors", errors.len())
        });
        let mut seen = HashSet::new();
        for name in errors {
            self.check(seen.insert(name), 8, place, || format!("{name} twice"));
        }
    }

    fn names_and_ids(&mut self) {
        let p = self.program;
        self.distinct("action", p.actions.iter().map(|o| (o.name.as_str(), o.id)));
        self.distinct("table", p.tables.iter().map(|o| (o.name.as_str(), o.id)));
        self.distinct(
            "register",
            p.registers.iter().map(|o| (o.name.as_str(), o.id)),
        );
        self.distinct(
            "counter",
            p.counters.iter().map(|o| (o.name.as_str(), o.id)),
        );
        self.distinct("meter", p.meters.iter().map(|o| (o.name.as_str(), o.id)));
        self.distinct("digest", p.digests.iter().map(|o| (o.name.as_str(), o.id)));
        self.distinct(
            "value set",
            p.value_sets.iter().map(|o| (o.name.as_str(), o.id)),
        );
        self.distinct(
            "controller header",
            p.controller_headers.iter().map(|o| (o.name.as_str(), o.id)),
        );
        self.distinct(
            "action profile",
            p.action_profiles.iter().map(|o| (o.name.as_str(), o.id)),
        );
    }

    fn distinct<'n>(&mut self, kind: &'static str, objects: impl Iterator<Item = (&'n str, u32)>) {
        let mut names = HashSet::new();
        let mut ids = HashSet::new();
        for (name, id) in objects {
            let place = Place::new(kind, name);
            self.check(names.insert(name), 9, place, || "the name is taken".into());
            self.check(id != 0, 9, place, || "the id is 0".into());
            self.check(ids.insert(id), 9, place, || format!("the id {id} is taken"));
        }
    }

    fn cells(&mut self) {
        let mut bytes = 0u64;
        for register in &self.program.registers {
            let place = Place::new("register", &register.name);
            let fits = (1..=Bits::MAX_WIDTH).contains(&register.width);
            self.check(fits, 10, place, || {
                format!("{} bits in a cell", register.width)
            });
            let cell = 8 * u64::from(register.width.div_ceil(64));
            bytes = bytes.saturating_add(register.size.saturating_mul(cell));
        }
        for counter in &self.program.counters {
            let cells = counter.size.unwrap_or(0);
            bytes = bytes.saturating_add(cells.saturating_mul(COUNTER_CELL_BYTES));
        }
        for meter in &self.program.meters {
            let cells = meter.size.unwrap_or(0);
            bytes = bytes.saturating_add(cells.saturating_mul(METER_CELL_BYTES));
        }
        let place = Place::new("registers, counters and meters", "");
        self.check(bytes <= MAX_OBJECT_BYTES, 10, place, || {
            format!("they need {bytes} bytes, more than {MAX_OBJECT_BYTES}")
        });
    }

    fn messages(&mut self) {
        for digest in &self.program.digests {
            self.members(&digest.widths, Place::new("digest", &digest.name));
        }
        for value_set in &self.program.value_sets {
            let place = Place::new("value set", &value_set.name);
            self.members(&value_set.widths, place);
            self.check(value_set.size <= MAX_TABLE_SIZE, 10, place, || {
                format!("a capacity of {}", value_set.size)
            });
        }
    }

    fn controller_headers(&mut self) {
        for header in &self.program.controller_headers {
            let place = Place::new("controller header", &header.name);
            let widths: Vec<u32> = header.fields.iter().map(|f| f.width).collect();
            self.members(&widths, place);
            let ids: HashSet<u32> = header.fields.iter().map(|f| f.id).collect();
            let fit = ids.len() == widths.len() && !ids.contains(&0);
            self.check(fit, 9, place, || "the id of a field is 0 or taken".into());
        }
    }

    fn action_profiles(&mut self) {
        for profile in &self.program.action_profiles {
            let place = Place::new("action profile", &profile.name);
            let group = profile.selector.map_or(0, |s| s.max_group_size);
            let fits = profile.size.max(group) <= MAX_TABLE_SIZE;
            self.check(fits, 10, place, || {
                format!("a capacity of {} with groups of {group}", profile.size)
            });
            let width = profile.selector.map_or(1, |s| s.width);
            self.check((1..=64).contains(&width), 10, place, || {
                format!("a hash of {width} bits")
            });
        }
    }

    fn members(&mut self, widths: &[u32], place: Place<'_>) {
        self.check(!widths.is_empty(), 11, place, || "no member".into());
        self.widths(widths.iter().copied(), 11, place);
    }

    /// Checks that each of `widths`, those of the members of an object, is allowed for a slot, and their sum
    /// for an expression. Reports violations of the invariant `invariant`.
    fn widths(&mut self, widths: impl Iterator<Item = u32>, invariant: u32, place: Place<'_>) {
        let mut sum = 0u64;
        for width in widths {
            let fits = (1..=Bits::MAX_WIDTH).contains(&width);
            self.check(fits, invariant, place, || {
                format!("a member has {width} bits")
            });
            sum += u64::from(width);
        }
        self.check(sum <= u64::from(MAX_EXPR_WIDTH), invariant, place, || {
            format!("the members have {sum} bits")
        });
    }

    fn field_lists(&mut self) {
        let bridged = self.program.architecture.description().bridged().count();
        let lists = self.program.field_lists.len();
        self.check(lists >= bridged, 12, Place::new("field lists", ""), || {
            format!("{lists} lists, but {bridged} are of bridged metadata")
        });
        for (i, list) in self.program.field_lists.iter().enumerate() {
            let name = i.to_string();
            let place = Place::new("field list", &name);
            let mut seen = HashSet::new();
            for &slot in &list.slots {
                self.slot(slot, place);
                self.check(seen.insert(slot), 12, place, || {
                    format!("slot %{} twice", slot.0)
                });
            }
        }
    }

    fn action_params(&mut self) {
        for action in &self.program.actions {
            let place = Place::new("action", &action.name);
            let mut ids = HashSet::new();
            let mut slots = HashSet::new();
            for param in &action.params {
                self.check(param.id != 0 && ids.insert(param.id), 9, place, || {
                    format!("the id of parameter {} is zero or taken", param.name)
                });
                self.check(slots.insert(param.slot), 13, place, || {
                    format!("two parameters go to %{}", param.slot.0)
                });
                if self.slot(param.slot, place).is_some() {
                    self.not_a_length(param.slot, place);
                }
            }
        }
    }

    /// Checks that a slot, whose id is in range, does not hold the length of a varbit (invariant 6).
    pub(super) fn not_a_length(&mut self, slot: SlotId, place: Place<'_>) {
        let free = self.roles.max_length[slot.index()].is_none();
        self.check(free, 6, place, || {
            format!("%{} is the length of a varbit", slot.0)
        });
    }

    fn table(&mut self, table: &Table) {
        let place = Place::new("table", &table.name);
        self.check(table.size <= MAX_TABLE_SIZE, 10, place, || {
            format!("a size of {}", table.size)
        });
        self.keys(table, place);
        self.table_actions(table, place);
        self.call(table, &table.default_action, ActionScope::TableOnly, place);
        self.entries(table, place);
        let counter = table
            .direct_counter
            .map(|c| self.program.counters.get(c.index()).map(|c| c.size));
        let meter = table
            .direct_meter
            .map(|m| self.program.meters.get(m.index()).map(|m| m.size));
        for (what, found) in [("counter", counter), ("meter", meter)] {
            let direct = found.is_none_or(|size| size == Some(None));
            self.check(direct, 19, place, || {
                format!("its {what} is not a direct one")
            });
        }
    }

    fn keys(&mut self, table: &Table, place: Place<'_>) {
        self.widths(table.keys.iter().map(|k| k.width), 14, place);
        let prefixes = table.keys.iter().filter(|k| k.kind.is_prefix()).count();
        self.check(prefixes <= 1, 14, place, || {
            format!("{prefixes} keys matched by prefix")
        });
        let mut ids = HashSet::new();
        for key in table.keys.iter().filter(|k| k.kind.is_looked_up()) {
            self.check(key.id != 0 && ids.insert(key.id), 9, place, || {
                format!("the id of key {} is zero or taken", key.name)
            });
        }
    }

    fn table_actions(&mut self, table: &Table, place: Place<'_>) {
        self.check(!table.actions.is_empty(), 15, place, || "no action".into());
        let mut seen = HashSet::new();
        for entry in &table.actions {
            let id = entry.action;
            let known = id.index() < self.program.actions.len();
            self.check(known, 15, place, || format!("there is no action {}", id.0));
            self.check(seen.insert(id), 15, place, || {
                format!("action {} twice", id.0)
            });
        }
    }

    /// Checks the action of an entry or the default action (invariant 16): the table has it, its scope is not
    /// `forbidden`, and its arguments fit its parameters.
    fn call(&mut self, table: &Table, call: &ActionCall, forbidden: ActionScope, place: Place<'_>) {
        let id = call.action;
        let allowed = table
            .actions
            .iter()
            .any(|a| a.action == id && a.scope != forbidden);
        self.check(allowed, 16, place, || {
            format!("action {} may not be used here", id.0)
        });
        let program = self.program;
        let Some(action) = program.actions.get(id.index()) else {
            return;
        };
        self.check(call.args.len() == action.params.len(), 16, place, || {
            format!(
                "{} arguments for the {} parameters of {}",
                call.args.len(),
                action.params.len(),
                action.name
            )
        });
        for arg in &call.args {
            self.constant(arg, place);
        }
        for (arg, param) in call.args.iter().zip(&action.params) {
            let slot = program.slots.get(param.slot.index());
            let fits = slot.is_none_or(|s| s.width == arg.width());
            self.check(fits, 16, place, || {
                format!("{arg} is not of the width of parameter {}", param.name)
            });
        }
    }

    fn entries(&mut self, table: &Table, place: Place<'_>) {
        if table.entries.is_empty() {
            return;
        }
        let all_looked_up = table.keys.iter().all(|k| k.kind.is_looked_up());
        self.check(!table.keys.is_empty() && all_looked_up, 17, place, || {
            "entries in a table without a key or with a selector".into()
        });
        let mut seen = HashSet::new();
        for entry in &table.entries {
            self.check(entry.matches.len() == table.keys.len(), 17, place, || {
                format!(
                    "{} matches for {} keys",
                    entry.matches.len(),
                    table.keys.len()
                )
            });
            for (found, key) in entry.matches.iter().zip(&table.keys) {
                self.key_match(found, key, place);
            }
            let priority = entry.priority;
            let fits = if table.needs_priority() {
                priority > 0
            } else {
                priority == 0
            };
            self.check(fits, 18, place, || format!("a priority of {priority}"));
            self.check(seen.insert((&entry.matches, priority)), 18, place, || {
                "two entries with equal matches".into()
            });
            self.call(table, &entry.action, ActionScope::DefaultOnly, place);
        }
    }

    fn key_match(&mut self, found: &KeyMatch, key: &Key, place: Place<'_>) {
        for value in found.values() {
            self.constant(value, place);
        }
        self.spend(0, place);
        let good = found.is_of(key.kind) && found.check(key.width).is_ok();
        self.check(good, 17, place, || {
            format!(
                "{found:?} is no match in its normal form for key {}",
                key.name
            )
        });
    }

    fn direct_objects(&mut self) {
        let mut counters = HashSet::new();
        let mut meters = HashSet::new();
        for table in &self.program.tables {
            let place = Place::new("table", &table.name);
            let counter = table.direct_counter.is_none_or(|c| counters.insert(c));
            let meter = table.direct_meter.is_none_or(|m| meters.insert(m));
            self.check(counter && meter, 19, place, || {
                "its direct counter or meter serves another table".into()
            });
        }
    }
}

/// Tables whose entries name members of a profile. Tables that share one may have different actions: the names that an entry may use are
/// checked when it is written.
impl Verifier<'_> {
    fn implementations(&mut self) {
        let program = self.program;
        for table in &program.tables {
            let Some(profile) = table.implementation else {
                continue;
            };
            let place = Place::new("table", &table.name);
            self.check(table.entries.is_empty(), 19, place, || {
                "entries in a table with an implementation".into()
            });
            let known = profile.index() < program.action_profiles.len();
            self.check(known, 19, place, || {
                format!("there is no action profile {}", profile.0)
            });
        }
    }
}

/// Returns whether all bits of `value` outside of `mask` are zero. Both must have the same width.
pub(super) fn is_within(value: &Bits, mask: &Bits) -> bool {
    value.and(mask) == *value
}
