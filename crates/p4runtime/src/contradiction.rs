//! Whether a P4Info is of a program. A client may push any two; what is served must be one.

use crate::tables::{TableInfo, kind_name};
use engine::control::ids;
use ir::{MatchKind, Program, Table};

/// What a P4Info says that a program can contradict. Widths are in bits; 0 is one that P4Info does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Tables, with the ids of implementation, direct counter and direct meter; 0 is none.
    pub tables: Vec<(TableInfo, [u32; 3])>,
    /// Id, number of cells and width of each register.
    pub registers: Vec<(u32, u64, u32)>,
    /// Id and number of cells of each indexed counter.
    pub counters: Vec<(u32, u64)>,
    /// Id and number of cells of each indexed meter.
    pub meters: Vec<(u32, u64)>,
    /// Id and widths of the members of each value set.
    pub value_sets: Vec<(u32, Vec<u32>)>,
    /// Id and width of each digest.
    pub digests: Vec<(u32, u32)>,
    /// Id of each action profile, and whether it is a selector.
    pub action_profiles: Vec<(u32, bool)>,
}

/// The first claim that is not true of the program, as a sentence.
pub fn contradiction(program: &Program, claims: &Claims) -> Option<String> {
    tables(program, claims)
        .or_else(|| arrays(program, claims))
        .or_else(|| others(program, claims))
}

fn tables(program: &Program, claims: &Claims) -> Option<String> {
    let wrong = claims.tables.iter().find_map(|(info, resources)| {
        let Some(id) = ids::table(program, info.id) else {
            return Some(format!("the program has no table with id {}", info.id));
        };
        let declared = &program.tables[id.index()];
        fields(declared, info)
            .or_else(|| actions(program, declared, info))
            .or_else(|| of_table(program, declared, *resources))
            .map(|what| format!("table '{}': {what}", declared.name))
    });
    let left_out = |table: &&Table| {
        !table.hidden && !claims.tables.iter().any(|(info, _)| info.id == table.id)
    };
    wrong.or_else(|| {
        let table = program.tables.iter().find(left_out)?;
        Some(format!("the P4Info leaves out table '{}'", table.name))
    })
}

fn fields(declared: &Table, info: &TableInfo) -> Option<String> {
    let keys = declared.keys.iter();
    let keys: Vec<_> = keys.filter(|key| key.kind != MatchKind::Selector).collect();
    for field in &info.fields {
        let Some(key) = keys.iter().find(|key| key.id == field.id) else {
            return Some(format!("it has no match field with id {}", field.id));
        };
        let kind = kind_name(key.kind).unwrap_or_default();
        if field.kind != kind {
            return Some(format!(
                "match field '{}' is {kind}, in the P4Info {}",
                key.name, field.kind
            ));
        }
        if let Some(widths) = different(key.width, field.width) {
            return Some(format!("match field '{}' has {widths}", key.name));
        }
    }
    let left_out = |key: &&&ir::Key| !info.fields.iter().any(|field| field.id == key.id);
    let key = keys.iter().find(left_out)?;
    Some(format!("the P4Info leaves out match field '{}'", key.name))
}

fn actions(program: &Program, declared: &Table, info: &TableInfo) -> Option<String> {
    info.actions.iter().find_map(|claimed| {
        let id = ids::action(program, claimed.id)
            .filter(|id| declared.actions.iter().any(|place| place.action == *id));
        let Some(id) = id else {
            return Some(format!("it has no action with id {}", claimed.id));
        };
        let action = &program.actions[id.index()];
        let wrong = action.params.iter().find_map(|param| {
            let width = program.slots[param.slot.index()].width;
            let Some((_, given)) = claimed.params.iter().find(|(id, _)| *id == param.id) else {
                return Some(format!("the P4Info leaves out parameter '{}'", param.name));
            };
            Some(format!(
                "parameter '{}' has {}",
                param.name,
                different(width, *given)?
            ))
        });
        let more = claimed.params.len() != action.params.len();
        wrong
            .or_else(|| more.then(|| "the P4Info has more parameters".to_owned()))
            .map(|what| format!("action '{}': {what}", action.name))
    })
}

fn of_table(program: &Program, declared: &Table, claimed: [u32; 3]) -> Option<String> {
    let profile = declared
        .implementation
        .map(|id| program.action_profiles[id.index()].id);
    let counter = declared
        .direct_counter
        .map(|id| program.counters[id.index()].id);
    let meter = declared
        .direct_meter
        .map(|id| program.meters[id.index()].id);
    let names = ["implementation", "direct counter", "direct meter"];
    let own = [profile, counter, meter].map(Option::unwrap_or_default);
    let at = (0..3).find(|&at| own[at] != claimed[at])?;
    Some(format!(
        "its {} has id {}, in the P4Info {} (0: none)",
        names[at], own[at], claimed[at]
    ))
}

fn arrays(program: &Program, claims: &Claims) -> Option<String> {
    let registers = claims.registers.iter().find_map(|&(id, size, width)| {
        let Some(at) = ids::register(program, id) else {
            return Some(format!("the program has no register with id {id}"));
        };
        let declared = &program.registers[at.index()];
        let wrong = sizes(Some(declared.size), size)
            .or_else(|| different(declared.width, width).map(|widths| format!("has {widths}")));
        Some(format!("register '{}' {}", declared.name, wrong?))
    });
    let counters = claims.counters.iter().find_map(|&(id, size)| {
        let at = ids::counter(program, id).map(|at| &program.counters[at.index()]);
        array("counter", id, at.map(|it| (&*it.name, it.size)), size)
    });
    let meters = claims.meters.iter().find_map(|&(id, size)| {
        let at = ids::meter(program, id).map(|at| &program.meters[at.index()]);
        array("meter", id, at.map(|it| (&*it.name, it.size)), size)
    });
    registers.or(counters).or(meters)
}

/// Of a counter or meter with this name and number of cells.
fn array(
    kind: &str,
    id: u32,
    declared: Option<(&str, Option<u64>)>,
    claimed: u64,
) -> Option<String> {
    match declared {
        None => Some(format!("the program has no {kind} with id {id}")),
        Some((name, size)) => Some(format!("{kind} '{name}' {}", sizes(size, claimed)?)),
    }
}

fn others(program: &Program, claims: &Claims) -> Option<String> {
    let value_sets = claims.value_sets.iter().find_map(|(id, widths)| {
        let Some(at) = ids::value_set(program, *id) else {
            return Some(format!("the program has no value set with id {id}"));
        };
        let declared = &program.value_sets[at.index()];
        if declared.widths.len() != widths.len() {
            let (own, claimed) = (declared.widths.len(), widths.len());
            return Some(format!(
                "value set '{}' has {own} fields, in the P4Info {claimed}",
                declared.name
            ));
        }
        let mut pairs = declared.widths.iter().zip(widths);
        let wrong = pairs.find_map(|(own, claimed)| different(*own, *claimed))?;
        Some(format!(
            "value set '{}' has a field of {wrong}",
            declared.name
        ))
    });
    let digests = claims.digests.iter().find_map(|&(id, width)| {
        let Some(at) = ids::digest(program, id) else {
            return Some(format!("the program has no digest with id {id}"));
        };
        let declared = &program.digests[at.index()];
        let own = declared
            .widths
            .iter()
            .fold(0_u32, |sum, it| sum.saturating_add(*it));
        let wrong = different(own, width)?;
        Some(format!("digest '{}' has {wrong}", declared.name))
    });
    let profiles = claims
        .action_profiles
        .iter()
        .find_map(|&(id, with_selector)| {
            let Some(at) = ids::action_profile(program, id) else {
                return Some(format!("the program has no action profile with id {id}"));
            };
            let declared = &program.action_profiles[at.index()];
            (declared.selector.is_some() != with_selector).then(|| {
                format!(
                    "action profile '{}' is a selector for only one of them",
                    declared.name
                )
            })
        });
    value_sets.or(digests).or(profiles)
}

/// None if they are the same, or the claimed one is not told.
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
