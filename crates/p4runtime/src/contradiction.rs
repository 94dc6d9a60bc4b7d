//! Whether a P4Info describes a program: a client may push any pair of the two, and only a pair that agrees is
//! served.

use crate::info::{Array, Field, Info, Table};
use crate::values::Type;
use ir::Program;

/// Compares a P4Info with a program. Returns a sentence about the first statement in the P4Info that is not true of
/// the program; `None` if all are true.
pub(crate) fn contradiction(program: &Program, info: &Info) -> Option<String> {
    tables(program, info)
        .or_else(|| arrays(program, info))
        .or_else(|| others(program, info))
}

fn tables(program: &Program, info: &Info) -> Option<String> {
    let wrong = info.tables.list.iter().find_map(|table| {
        let Some(declared) = program.tables.get(table.number) else {
            return Some(format!("the program has no table with id {}", table.id));
        };
        fields(declared, table)
            .or_else(|| actions(program, declared, table, info))
            .or_else(|| of_table(program, declared, table))
            .map(|what| format!("table '{}': {what}", declared.name))
    });
    let left_out = |table: &&ir::Table| !table.hidden && info.tables.get(table.id).is_none();
    wrong.or_else(|| {
        let table = program.tables.iter().find(left_out)?;
        Some(format!("the P4Info leaves out table '{}'", table.name))
    })
}

fn fields(declared: &ir::Table, table: &Table) -> Option<String> {
    let keys = declared.keys.iter();
    let keys: Vec<_> = keys.filter(|key| key.kind.is_looked_up()).collect();
    for field in &table.fields.list {
        let Some(key) = keys.iter().find(|key| key.id == field.id) else {
            return Some(format!("it has no match field with id {}", field.id));
        };
        if field.kind != key.kind {
            let (kind, given) = (key.kind.name(), field.kind.name());
            return Some(format!(
                "match field '{}' is {kind}, in the P4Info {given}",
                key.name
            ));
        }
        if let Some(widths) = different(key.width, field.width_in_program()) {
            return Some(format!("match field '{}' has {widths}", key.name));
        }
    }
    let key = keys.iter().find(|key| table.fields.get(key.id).is_none())?;
    Some(format!("the P4Info leaves out match field '{}'", key.name))
}

fn actions(program: &Program, declared: &ir::Table, table: &Table, info: &Info) -> Option<String> {
    table.actions.iter().find_map(|(id, _)| {
        let claimed = info.actions.get(*id)?;
        let mut places = declared.actions.iter();
        if !places.any(|place| place.action.index() == claimed.number) {
            return Some(format!("it has no action with id {id}"));
        }
        let action = &program.actions[claimed.number];
        let wrong = action.params.iter().find_map(|param| {
            let width = program.slots[param.slot.index()].width;
            let Some(given) = claimed.params.get(param.id) else {
                return Some(format!("the P4Info leaves out parameter '{}'", param.name));
            };
            let widths = different(width, given.width_in_program())?;
            Some(format!("parameter '{}' has {widths}", param.name))
        });
        let more = claimed.params.list.len() != action.params.len();
        wrong
            .or_else(|| more.then(|| "the P4Info has more parameters".to_owned()))
            .map(|what| format!("action '{}': {what}", action.name))
    })
}

fn of_table(program: &Program, declared: &ir::Table, table: &Table) -> Option<String> {
    let profile = declared.implementation;
    let profile = profile.map(|id| program.action_profiles[id.index()].id);
    let counter = declared.direct_counter;
    let counter = counter.map(|id| program.counters[id.index()].id);
    let meter = declared.direct_meter;
    let meter = meter.map(|id| program.meters[id.index()].id);
    let names = ["implementation", "direct counter", "direct meter"];
    let own = [profile, counter, meter].map(Option::unwrap_or_default);
    let meter = table.direct_meter.map_or(0, |(id, _)| id);
    let claimed = [table.implementation, table.direct_counter, meter];
    let at = (0..3).find(|&at| own[at] != claimed[at])?;
    Some(format!(
        "its {} has id {}, in the P4Info {} (0: none)",
        names[at], own[at], claimed[at]
    ))
}

fn arrays(program: &Program, info: &Info) -> Option<String> {
    let registers = info.registers.list.iter().find_map(|register| {
        let Some(declared) = program.registers.get(register.number) else {
            return Some(format!(
                "the program has no register with id {}",
                register.id
            ));
        };
        let width = register.ty.as_ref().map_or(0, Type::width_in_program);
        let wrong = sizes(Some(declared.size), register.size)
            .or_else(|| different(declared.width, width).map(|widths| format!("has {widths}")));
        Some(format!("register '{}' {}", declared.name, wrong?))
    });
    let counters = info.counters.list.iter().find_map(|counter| {
        let declared = program.counters.get(counter.number);
        array("counter", declared.map(|it| (&*it.name, it.size)), counter)
    });
    let meters = info.meters.list.iter().find_map(|meter| {
        let declared = program.meters.get(meter.number);
        array("meter", declared.map(|it| (&*it.name, it.size)), meter)
    });
    registers.or(counters).or(meters)
}

/// Compares a counter or meter in the P4Info (`claimed`) with the name and size that the program declares, or with
/// `None` if it declares no such object. `kind` is "counter" or "meter" in messages. Returns a sentence about the
/// difference, `None` if there is none.
fn array(kind: &str, declared: Option<(&str, Option<u64>)>, claimed: &Array) -> Option<String> {
    match declared {
        None => Some(format!("the program has no {kind} with id {}", claimed.id)),
        Some((name, size)) => Some(format!("{kind} '{name}' {}", sizes(size, claimed.size)?)),
    }
}

fn others(program: &Program, info: &Info) -> Option<String> {
    let value_sets = info.value_sets.list.iter().find_map(|set| {
        let Some(declared) = program.value_sets.get(set.number) else {
            return Some(format!("the program has no value set with id {}", set.id));
        };
        let name = &declared.name;
        let (own, claimed) = (declared.widths.len(), set.fields.list.len());
        if own != claimed {
            return Some(format!(
                "value set '{name}' has {own} fields, in the P4Info {claimed}"
            ));
        }
        let claimed = set.fields.list.iter().map(Field::width_in_program);
        let mut pairs = declared.widths.iter().zip(claimed);
        let wrong = pairs.find_map(|(own, claimed)| different(*own, claimed))?;
        Some(format!("value set '{name}' has a field of {wrong}"))
    });
    let digests = info.digests.list.iter().find_map(|digest| {
        let Some(declared) = program.digests.get(digest.number) else {
            return Some(format!("the program has no digest with id {}", digest.id));
        };
        let widths = declared.widths.iter();
        let own = widths.fold(0_u32, |sum, it| sum.saturating_add(*it));
        let width = digest.ty.as_ref().map_or(0, Type::width_in_program);
        let wrong = different(own, width)?;
        Some(format!("digest '{}' has {wrong}", declared.name))
    });
    let profiles = info.profiles.list.iter().find_map(|profile| {
        let Some(declared) = program.action_profiles.get(profile.number) else {
            let id = profile.id;
            return Some(format!("the program has no action profile with id {id}"));
        };
        let name = &declared.name;
        (declared.selector.is_some() != profile.with_selector)
            .then(|| format!("action profile '{name}' is a selector for only one of them"))
    });
    value_sets.or(digests).or(profiles)
}

/// Compares a width in the program (`own`) with that in the P4Info (`claimed`), both in bits. Returns a phrase that
/// names both; `None` if they are equal, or if the P4Info gives no width (`claimed` is 0).
fn different(own: u32, claimed: u32) -> Option<String> {
    let same = claimed == 0 || own == claimed;
    (!same).then(|| format!("{own} bits, in the P4Info {claimed}"))
}

fn sizes(own: Option<u64>, claimed: u64) -> Option<String> {
    match own {
        Some(own) if own == claimed => None,
        Some(own) => Some(format!("has {own} cells, in the P4Info {claimed}")),
        None => Some("is a direct one, in the P4Info it is indexed".to_owned()),
    }
}
