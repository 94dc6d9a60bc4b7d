//! Members and groups of action profiles, meters, value sets and digests, from the control plane's records to the engine's.

use super::{EntryRecord, MatchRecord, invalid, match_record, resolve_action_call, resolve_match};
use super::{arg_records, resolve_matches, table, unknown};
use crate::objects::{ColourCounts, DigestConfig, MeterRates, ProfileMember};
use engine::control::{
    ControlError, Entity, EntryAction, GroupContents, GroupMember, Operation, Target,
    WeightedAction, ids,
};
use engine::digest::DigestList;
use engine::meter::MeterConfig;
use engine::runtime::CounterData;
use ir::{ActionProfileId, DigestId, MatchKind, Program, ValueSetId};

/// An action with its arguments.
pub(crate) type CallRecord = (u32, Vec<(u32, Vec<u8>)>);

/// What an entry of a table with an implementation names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetRecord {
    Member(u32),
    Group(u32),
    /// Action, weight and watched port of each.
    OneShot(Vec<(CallRecord, u32, Option<u32>)>),
}

/// A stateful object that an update is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ObjectRecord {
    Member {
        profile_id: u32,
        member_id: u32,
        call: CallRecord,
    },
    Group {
        profile_id: u32,
        group_id: u32,
        members: Vec<ProfileMember>,
        max_size: u64,
    },
    Meter {
        meter_id: u32,
        index: Option<u64>,
        config: Option<MeterRates>,
    },
    DirectMeter {
        entry: Box<EntryRecord>,
        config: Option<MeterRates>,
    },
    ValueSet {
        value_set_id: u32,
        members: Vec<Vec<(u32, MatchRecord)>>,
    },
    Digest(DigestConfig),
}

pub(crate) fn profile(program: &Program, id: u32) -> Result<ActionProfileId, ControlError> {
    ids::action_profile(program, id).ok_or_else(|| unknown("action profile", id))
}

pub(crate) fn digest(program: &Program, id: u32) -> Result<DigestId, ControlError> {
    ids::digest(program, id).ok_or_else(|| unknown("digest", id))
}

/// The digests that have a configuration.
pub(crate) fn digest_configs(switch: &engine::Switch) -> Vec<DigestConfig> {
    let declared = switch.program().digests.iter().enumerate();
    let configured = declared.filter_map(|(i, digest)| {
        let config = switch.digest_config(DigestId(i as u32)).ok()??;
        Some(DigestConfig {
            digest_id: digest.id,
            max_timeout_ns: config.max_timeout_ns,
            max_list_size: config.max_list_size,
            ack_timeout_ns: config.ack_timeout_ns,
        })
    });
    configured.collect()
}

/// P4Runtime id of the digest, id of the list, and its messages, each the members side by side.
pub(crate) type DigestListRecord = (u32, u64, Vec<Vec<u8>>);

pub(super) fn digest_lists(program: &Program, lists: Vec<DigestList>) -> Vec<DigestListRecord> {
    let lists = lists.into_iter().map(|list| {
        let messages = list.messages.into_iter().map(|members| {
            let whole = members.into_iter().reduce(|high, low| high.concat(&low));
            whole.map(|w| w.to_be_bytes()).unwrap_or_default()
        });
        let id = program.digests[list.digest.index()].id;
        (id, list.list_id, messages.collect())
    });
    lists.collect()
}

/// Takes the digest lists that are due at the switch's time, which comes with them.
pub(crate) fn take_digest_lists(switch: &mut engine::Switch) -> (u64, Vec<DigestListRecord>) {
    let program = switch.program().clone();
    let now_ps = switch.runtime().now_ps();
    (
        now_ps,
        digest_lists(&program, switch.take_due_digests(now_ps)),
    )
}

/// Takes entries that are idle at the switch's time, so many at most. The timers have been followed.
pub(crate) fn take_idle_entries(switch: &mut engine::Switch, most: usize) -> Vec<EntryRecord> {
    let program = switch.program().clone();
    let now_ps = switch.runtime().now_ps();
    let idle = switch.take_idle_entries(now_ps, most).into_iter();
    idle.map(|(table, installed)| super::entry_record(&program, table, &installed))
        .collect()
}

pub(super) fn meter_config((cir, cburst, pir, pburst): MeterRates) -> MeterConfig {
    MeterConfig {
        cir,
        cburst,
        pir,
        pburst,
    }
}

pub(super) fn rates(config: MeterConfig) -> MeterRates {
    (config.cir, config.cburst, config.pir, config.pburst)
}

pub(super) fn colour_counts(counts: [CounterData; 3]) -> ColourCounts {
    let [green, yellow, red] = counts.map(|c| (c.packets, c.bytes));
    (green, yellow, red)
}

pub(super) fn resolve(
    program: &Program,
    operation: Operation,
    object: ObjectRecord,
) -> Result<Entity, ControlError> {
    match object {
        ObjectRecord::Member {
            profile_id,
            member_id,
            call,
        } => {
            let with_action = operation != Operation::Delete && call.0 != 0;
            let call = with_action.then(|| resolve_action_call(program, call.0, &call.1));
            Ok(Entity::ActionProfileMember {
                profile: profile(program, profile_id)?,
                member_id,
                call: call.transpose()?,
            })
        }
        ObjectRecord::Group {
            profile_id,
            group_id,
            members,
            max_size,
        } => {
            let members = members.into_iter();
            let members = members.map(|(member_id, weight, watch_port)| GroupMember {
                member_id,
                weight,
                watch_port,
            });
            Ok(Entity::ActionProfileGroup {
                profile: profile(program, profile_id)?,
                group_id,
                contents: GroupContents {
                    members: members.collect(),
                    max_size,
                },
            })
        }
        ObjectRecord::Meter {
            meter_id,
            index,
            config,
        } => Ok(Entity::Meter {
            meter: ids::meter(program, meter_id).ok_or_else(|| unknown("meter", meter_id))?,
            index,
            config: config.map(meter_config),
        }),
        ObjectRecord::DirectMeter { entry, config } => {
            let table = table(program, entry.table_id)?;
            if entry.is_default {
                let name = &program.tables[table.index()].name;
                return Err(invalid(format!(
                    "table {name}: the default entry has no direct meter"
                )));
            }
            Ok(Entity::DirectMeter {
                table,
                matches: resolve_matches(program, table, &entry)?,
                priority: entry.priority,
                config: config.map(meter_config),
            })
        }
        ObjectRecord::ValueSet {
            value_set_id,
            members,
        } => resolve_value_set(program, value_set_id, &members),
        ObjectRecord::Digest(config) => Ok(Entity::Digest {
            digest: digest(program, config.digest_id)?,
            config: engine::digest::DigestConfig {
                max_list_size: config.max_list_size,
                max_timeout_ns: config.max_timeout_ns,
                ack_timeout_ns: config.ack_timeout_ns,
            },
        }),
    }
}

pub(super) fn resolve_target(
    program: &Program,
    target: &TargetRecord,
) -> Result<EntryAction, ControlError> {
    Ok(EntryAction::Target(match target {
        TargetRecord::Member(id) => Target::Member(*id),
        TargetRecord::Group(id) => Target::Group(*id),
        TargetRecord::OneShot(actions) => {
            let actions = actions
                .iter()
                .map(|((action_id, args), weight, watch_port)| {
                    Ok(WeightedAction {
                        call: resolve_action_call(program, *action_id, args)?,
                        weight: *weight,
                        watch_port: *watch_port,
                    })
                });
            Target::OneShot(actions.collect::<Result<_, ControlError>>()?)
        }
    }))
}

pub(super) fn target_record(program: &Program, target: &Target) -> TargetRecord {
    match target {
        Target::Member(id) => TargetRecord::Member(*id),
        Target::Group(id) => TargetRecord::Group(*id),
        Target::OneShot(actions) => {
            let actions = actions.iter().map(|action| {
                let call = &action.call;
                let id = program.actions[call.action.index()].id;
                let args = arg_records(program, call.action, &call.args);
                ((id, args), action.weight, action.watch_port)
            });
            TargetRecord::OneShot(actions.collect())
        }
    }
}

/// The key of each field of a value set, as that of a table's key that is ternary: any match may be given.
fn resolve_value_set(
    program: &Program,
    id: u32,
    members: &[Vec<(u32, MatchRecord)>],
) -> Result<Entity, ControlError> {
    let value_set = ids::value_set(program, id).ok_or_else(|| unknown("value set", id))?;
    let declared = &program.value_sets[value_set.index()];
    let resolve_member = |member: &Vec<(u32, MatchRecord)>| {
        let known = |id: u32| (1..=declared.widths.len() as u32).contains(&id);
        if let Some((id, _)) = member.iter().find(|(id, _)| !known(*id)) {
            return Err(invalid(format!(
                "value set {} has no match field with id {id}",
                declared.name
            )));
        }
        let fields = declared.widths.iter().zip(1..);
        let fields = fields.map(|(&width, id)| {
            let given = member.iter().find(|(given, _)| *given == id);
            let given = given.map(|(_, given)| given);
            let kind = match given {
                Some(MatchRecord::Exact(_)) => MatchKind::Exact,
                Some(MatchRecord::Lpm(..)) => MatchKind::Lpm,
                Some(MatchRecord::Range(..)) => MatchKind::Range,
                Some(MatchRecord::Optional(_)) => MatchKind::Optional,
                Some(MatchRecord::Ternary(..)) | None => MatchKind::Ternary,
            };
            let key = ir::Key {
                name: id.to_string(),
                id,
                width,
                kind,
            };
            resolve_match(&key, given)
                .map_err(|why| invalid(format!("value set {}: {why}", declared.name)))
        });
        fields.collect()
    };
    let members: Result<_, ControlError> = members.iter().map(resolve_member).collect();
    Ok(Entity::ValueSet {
        value_set,
        members: members?,
    })
}

/// P4Runtime id of a value set, and the matches of each of its members by match field id.
pub(crate) type ValueSetRecord = (u32, Vec<Vec<(u32, MatchRecord)>>);

/// The members of a value set (0: of all), by match field id.
pub(crate) fn value_sets(
    switch: &engine::Switch,
    id: u32,
) -> Result<Vec<ValueSetRecord>, ControlError> {
    let program = switch.program();
    let wanted: Vec<ValueSetId> = match id {
        0 => (0..program.value_sets.len() as u32)
            .map(ValueSetId)
            .collect(),
        id => vec![ids::value_set(program, id).ok_or_else(|| unknown("value set", id))?],
    };
    let read = |value_set: ValueSetId| {
        let members = switch.value_set_members(value_set)?.iter().map(|member| {
            let fields = member.iter().zip(1..);
            let fields = fields.filter_map(|(m, id)| Some((id, match_record(m)?)));
            fields.collect()
        });
        Ok((program.value_sets[value_set.index()].id, members.collect()))
    };
    wanted.into_iter().map(read).collect()
}

/// The profiles with an id, or all.
fn profiles(program: &Program, id: u32) -> Result<Vec<ActionProfileId>, ControlError> {
    Ok(match id {
        0 => (0..program.action_profiles.len() as u32)
            .map(ActionProfileId)
            .collect(),
        id => vec![profile(program, id)?],
    })
}

/// Members of a profile (0: of all): profile, member, what it runs.
pub(crate) fn members(
    switch: &engine::Switch,
    id: u32,
) -> Result<Vec<(u32, u32, CallRecord)>, ControlError> {
    let program = switch.program();
    let mut found = Vec::new();
    for profile in profiles(program, id)? {
        let id = program.action_profiles[profile.index()].id;
        let contents = switch.action_profile(profile)?;
        for member in contents.member_ids() {
            if let Some(call) = contents.member(member) {
                let args = arg_records(program, call.action, &call.args);
                let action = program.actions[call.action.index()].id;
                found.push((id, member, (action, args)));
            }
        }
    }
    Ok(found)
}

/// Groups of a selector (0: of all): profile, group, contents.
pub(crate) fn groups(
    switch: &engine::Switch,
    id: u32,
) -> Result<Vec<(u32, u32, GroupContents)>, ControlError> {
    let program = switch.program();
    let mut found = Vec::new();
    for profile in profiles(program, id)? {
        let id = program.action_profiles[profile.index()].id;
        let contents = switch.action_profile(profile)?;
        for group in contents.group_ids() {
            if let Some(contents) = contents.group(group) {
                found.push((id, group, contents));
            }
        }
    }
    Ok(found)
}

/// Index, configuration and counts of a meter's cell.
pub(crate) type MeterRecord = (u64, Option<MeterRates>, Option<ColourCounts>);

/// The cells of an indexed meter, one of them, or those that are configured.
pub(crate) fn meters(
    switch: &engine::Switch,
    meter_id: u32,
    part: Option<super::Part>,
    configured: bool,
) -> Result<Vec<MeterRecord>, ControlError> {
    let program = switch.program();
    let meter = ids::meter(program, meter_id).ok_or_else(|| unknown("meter", meter_id))?;
    let read = |index| {
        let config = switch.read_meter(meter, index)?;
        let counts = switch.read_meter_counts(meter, index)?;
        Ok((index, config.map(rates), counts.map(colour_counts)))
    };
    let listed = match configured {
        true => Some(switch.configured_meters(meter)?),
        false => None,
    };
    let size = program.meters[meter.index()].size.unwrap_or(0);
    super::cells(part, size, listed, read)
}
