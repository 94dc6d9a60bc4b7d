//! Action profiles (specification, "ActionProfileMember & ActionProfileGroup"), multicast groups and clone sessions
//! ("PacketReplicationEngineEntry"): from messages to the engine's and back.
//!
//! Ports are the architecture's, not translated. The deprecated numeric ports are taken too, and given back to who used them.

use crate::errors::{invalid, out_of_range};
use crate::info::{Profile, Table};
use crate::messages as m;
use crate::pipeline::{ObjectNote, Pipeline};
use crate::values;
use engine::control::{
    CloneSession, ControlError, Entity, GroupContents, GroupMember, MulticastGroup, Operation,
    Replica, Target, WeightedAction,
};
use engine::refuse;
use ir::{ActionCall, ActionProfileId};
use std::collections::BTreeSet;

const PORT_BITS: u32 = 9;
const INSTANCE_BITS: u32 = 16;
const GROUP_BITS: u32 = 16;
const CLASS_BITS: u32 = 3;

/// The greatest number of so many bits.
fn most(bits: u32) -> u32 {
    (1 << bits) - 1
}

impl Profile {
    pub fn profile_id(&self) -> ActionProfileId {
        ActionProfileId(self.number as u32)
    }

    fn checked_weight(&self, weight: i32, what: &str) -> Result<u32, ControlError> {
        if self.weights_disallowed {
            return match weight {
                0 => Ok(1),
                _ => Err(invalid(format!("{what}: weights are not allowed"))),
            };
        }
        refuse!(weight <= 0 => InvalidArgument, "{what}: weight {weight} is not above zero");
        let most = self.max_member_weight;
        refuse!(
            most != 0 && weight > most => InvalidArgument,
            "{what}: weight {weight} is above {most}"
        );
        Ok(weight as u32)
    }

    fn shown_weight(&self, weight: u32) -> i32 {
        if self.weights_disallowed {
            0
        } else {
            weight as i32
        }
    }
}

/// The port of a message with a `watch_kind`.
fn watch_port(watch: Option<&m::Watch>, what: &str) -> Result<Option<u32>, ControlError> {
    match watch {
        Some(m::Watch::Port(bytes)) if !bytes.is_empty() => {
            let port = values::number(bytes, PORT_BITS, PORT_BITS);
            let port = port.map_err(|why| invalid(format!("{what}: watch port: {why}")))?;
            Ok(Some(port.low_u64() as u32))
        }
        Some(m::Watch::Number(port)) => match u32::try_from(*port) {
            Ok(port) if port <= most(PORT_BITS) => Ok(Some(port)),
            _ => Err(invalid(format!(
                "{what}: watch port {port} does not fit into {PORT_BITS} bits"
            ))),
        },
        _ => Ok(None),
    }
}

fn watch_message(port: Option<u32>, numeric: bool) -> Option<m::Watch> {
    port.map(|port| match numeric {
        true => m::Watch::Number(port as i32),
        false => m::Watch::Port(values::bytestring_of(port.into())),
    })
}

fn is_numeric(watch: Option<&m::Watch>) -> bool {
    matches!(watch, Some(m::Watch::Number(_)))
}

/// What of a one-shot set the switch does not keep.
pub(crate) fn set_note(set: &m::ActionSet) -> m::EntryNote {
    let numeric = set.actions.iter().zip(0..);
    let numeric = numeric.filter(|(action, _)| is_numeric(action.watch.as_ref()));
    m::EntryNote {
        numeric_watches: numeric.map(|(_, position)| position).collect(),
        mode: set.mode,
        semantics: set.semantics,
        ..m::EntryNote::default()
    }
}

impl Pipeline {
    pub(crate) fn one_shot(
        &self,
        table: &Table,
        profile: &Profile,
        set: &m::ActionSet,
    ) -> Result<Target, ControlError> {
        let name = &profile.name;
        refuse!(
            !profile.with_selector => InvalidArgument,
            "action profile '{name}' has no selector, so no one-shot sets"
        );
        let what = format!("action profile '{name}', one-shot set");
        // What 1.5 added: only spelling out what is the case anyhow.
        let semantics = if profile.by_members { 2 } else { 1 };
        refuse!(
            ![0, 1].contains(&set.mode) || ![0, semantics].contains(&set.semantics) => Unimplemented,
            "{what}: selection mode and size semantics are the selector's; leave them out"
        );
        refuse!(
            set.group_action.is_some() => Unimplemented,
            "{what}: group actions are not supported"
        );
        let actions = set.actions.iter().map(|item| {
            let action = item.action.as_ref();
            let action = action.ok_or_else(|| invalid(format!("{what}: an action is missing")))?;
            let weight = profile.checked_weight(item.weight, &what)?;
            Ok(WeightedAction {
                call: self.call(table, action, false)?,
                weight,
                watch_port: watch_port(item.watch.as_ref(), &what)?,
            })
        });
        let actions: Vec<_> = actions.collect::<Result<_, ControlError>>()?;
        let size = match profile.by_members {
            true => actions.len() as u64,
            false => actions.iter().map(|action| u64::from(action.weight)).sum(),
        };
        let most = profile.max_group_size;
        refuse!(
            most != 0 && size > most => InvalidArgument,
            "{what}: its size {size} is above {most}"
        );
        Ok(Target::OneShot(actions))
    }

    pub(crate) fn set_message(
        &self,
        profile: &Profile,
        actions: &[WeightedAction],
        note: &m::EntryNote,
    ) -> m::ActionSet {
        let actions = actions.iter().zip(0..).map(|(action, position)| {
            let numeric = note.numeric_watches.contains(&position);
            m::WeightedAction {
                action: Some(self.action_message(&action.call)),
                weight: profile.shown_weight(action.weight),
                watch: watch_message(action.watch_port, numeric),
            }
        });
        m::ActionSet {
            actions: actions.collect(),
            mode: note.mode,
            semantics: note.semantics,
            group_action: None,
        }
    }

    pub(crate) fn member(
        &self,
        operation: Operation,
        message: &m::ActionProfileMember,
    ) -> Result<Entity, ControlError> {
        let profile = self.info.profiles.by_id(message.action_profile_id)?;
        let name = &profile.name;
        refuse!(
            message.member_id == 0 => InvalidArgument,
            "action profile '{name}': a member's id is not zero"
        );
        let call = match (operation, &message.action) {
            (Operation::Delete, _) => None,
            (_, None) => {
                return Err(invalid(format!(
                    "action profile '{name}': the member has no action"
                )));
            }
            (_, Some(action)) => Some(self.member_call(profile, action)?),
        };
        Ok(Entity::ActionProfileMember {
            profile: profile.profile_id(),
            member_id: message.member_id,
            call,
        })
    }

    /// An action of one of the tables that the profile implements. Tables may differ in their actions; the engine checks that an
    /// entry names what its own table can run.
    fn member_call(
        &self,
        profile: &Profile,
        message: &m::Action,
    ) -> Result<ActionCall, ControlError> {
        let tables = profile.table_ids.iter();
        let tables: Vec<&Table> = tables.filter_map(|id| self.info.tables.get(*id)).collect();
        let able = |table: &&&Table| {
            let mut actions = table.actions.iter();
            actions.any(|(id, scope)| {
                *id == message.action_id && *scope != ir::ActionScope::DefaultOnly
            })
        };
        match tables.iter().find(able).or(tables.first()) {
            Some(table) => self.call(table, message, false),
            None => Err(invalid(format!(
                "action profile '{}' implements no table, so no action is its",
                profile.name
            ))),
        }
    }

    pub(crate) fn member_message(
        &self,
        profile: &Profile,
        member_id: u32,
        call: &ActionCall,
    ) -> m::EntityKind {
        m::EntityKind::Member(m::ActionProfileMember {
            action_profile_id: profile.id,
            member_id,
            action: Some(self.action_message(call)),
        })
    }

    pub(crate) fn group(
        &self,
        operation: Operation,
        message: &m::ActionProfileGroup,
    ) -> Result<(Entity, ObjectNote), ControlError> {
        let profile = self.info.profiles.by_id(message.action_profile_id)?;
        let (name, group_id) = (&profile.name, message.group_id);
        let what = format!("action profile '{name}', group {group_id}");
        refuse!(
            group_id == 0 => InvalidArgument,
            "action profile '{name}': a group's id is not zero"
        );
        let mut contents = GroupContents {
            members: Vec::new(),
            max_size: 0,
        };
        if operation != Operation::Delete {
            refuse!(
                !profile.with_selector => InvalidArgument,
                "action profile '{name}' has no selector, so no groups"
            );
            contents.max_size = checked_max_size(profile, message.max_size, &what)?;
            for member in &message.members {
                contents.members.push(GroupMember {
                    member_id: member.member_id,
                    weight: profile.checked_weight(member.weight, &what)?,
                    watch_port: watch_port(member.watch.as_ref(), &what)?,
                });
            }
            let ids: BTreeSet<u32> = contents.members.iter().map(|m| m.member_id).collect();
            refuse!(
                ids.len() != contents.members.len() => InvalidArgument,
                "{what}: a member is in it twice; give it more weight instead"
            );
        }
        let numeric = message.members.iter();
        let numeric = numeric.filter(|member| is_numeric(member.watch.as_ref()));
        let numeric = numeric.map(|member| member.member_id).collect();
        let entity = Entity::ActionProfileGroup {
            profile: profile.profile_id(),
            group_id,
            contents,
        };
        Ok((entity, ObjectNote::Group((profile.id, group_id), numeric)))
    }

    pub(crate) fn group_message(
        &self,
        profile: &Profile,
        group_id: u32,
        contents: &GroupContents,
    ) -> m::EntityKind {
        let notes = self.notes();
        let numeric = notes.groups.get(&(profile.id, group_id));
        let members = contents.members.iter().map(|member| {
            let numeric = numeric.is_some_and(|ids| ids.contains(&member.member_id));
            m::GroupMember {
                member_id: member.member_id,
                weight: profile.shown_weight(member.weight),
                watch: watch_message(member.watch_port, numeric),
            }
        });
        m::EntityKind::Group(m::ActionProfileGroup {
            action_profile_id: profile.id,
            group_id,
            members: members.collect(),
            max_size: contents.max_size as i32,
        })
    }

    pub(crate) fn replication(
        &self,
        operation: Operation,
        message: &m::ReplicationEntry,
    ) -> Result<(Entity, ObjectNote), ControlError> {
        match &message.kind {
            Some(m::ReplicationKind::Group(group)) => multicast_group(operation, group),
            Some(m::ReplicationKind::Session(session)) => clone_session(operation, session),
            None => Err(no_type()),
        }
    }

    pub(crate) fn multicast_message(&self, group: &MulticastGroup) -> m::EntityKind {
        let notes = self.notes();
        let note = notes.multicast.get(&group.group_id);
        let entry = m::MulticastGroupEntry {
            group_id: group.group_id,
            replicas: replica_messages(&group.replicas, note.map(|(_, numeric)| numeric)),
            metadata: note.map(|(data, _)| data.clone()).unwrap_or_default(),
        };
        let kind = Some(m::ReplicationKind::Group(entry));
        m::EntityKind::Replication(m::ReplicationEntry { kind })
    }

    pub(crate) fn session_message(&self, session: &CloneSession) -> m::EntityKind {
        let notes = self.notes();
        let entry = m::CloneSessionEntry {
            session_id: session.session_id,
            replicas: replica_messages(&session.replicas, notes.sessions.get(&session.session_id)),
            class_of_service: session.class_of_service.into(),
            packet_length_bytes: session.packet_length_bytes as i32,
        };
        let kind = Some(m::ReplicationKind::Session(entry));
        m::EntityKind::Replication(m::ReplicationEntry { kind })
    }
}

pub(crate) fn no_type() -> ControlError {
    invalid("the packet replication engine entry has no type")
}

/// As in the specification's rules on setting `max_size`.
fn checked_max_size(profile: &Profile, max_size: i32, what: &str) -> Result<u64, ControlError> {
    let most = profile.max_group_size;
    match u64::try_from(max_size) {
        Err(_) => Err(invalid(format!("{what}: max_size {max_size} is negative"))),
        Ok(size) if most != 0 && !(1..=most).contains(&size) => Err(invalid(format!(
            "{what}: max_size {size} is not between 1 and {most}"
        ))),
        Ok(size) => Ok(size),
    }
}

fn multicast_group(
    operation: Operation,
    message: &m::MulticastGroupEntry,
) -> Result<(Entity, ObjectNote), ControlError> {
    let group_id = message.group_id;
    let what = format!("multicast group {group_id}");
    if !(1..=most(GROUP_BITS)).contains(&group_id) {
        let most = most(GROUP_BITS);
        return Err(invalid(format!(
            "{what}: the id is not between 1 and {most}"
        )));
    }
    let replicas = match operation {
        Operation::Delete => Vec::new(),
        _ => replicas(&message.replicas, &what)?,
    };
    let distinct: BTreeSet<(u32, u16)> = replicas.iter().map(|r| (r.port, r.rid)).collect();
    refuse!(
        distinct.len() != replicas.len() => InvalidArgument,
        "{what}: two replicas have the same port and instance"
    );
    let numeric = numeric_ports(&message.replicas);
    // Not a part of the request, which would stay in memory.
    let metadata = message.metadata.to_vec().into();
    Ok((
        Entity::MulticastGroup(MulticastGroup { group_id, replicas }),
        ObjectNote::Multicast(group_id, metadata, numeric),
    ))
}

fn clone_session(
    operation: Operation,
    message: &m::CloneSessionEntry,
) -> Result<(Entity, ObjectNote), ControlError> {
    let session_id = message.session_id;
    refuse!(session_id == 0 => InvalidArgument, "clone session: the id is not zero in a write");
    let what = format!("clone session {session_id}");
    let mut session = CloneSession {
        session_id,
        replicas: Vec::new(),
        packet_length_bytes: 0,
        class_of_service: 0,
    };
    if operation != Operation::Delete {
        let (class, length) = (message.class_of_service, message.packet_length_bytes);
        if class > most(CLASS_BITS) {
            let most = most(CLASS_BITS);
            return Err(invalid(format!(
                "{what}: class of service {class} is above {most}"
            )));
        }
        session.class_of_service = class as u8;
        session.packet_length_bytes = u32::try_from(length)
            .map_err(|_| invalid(format!("{what}: packet length {length} bytes is negative")))?;
        session.replicas = replicas(&message.replicas, &what)?;
    }
    let numeric = numeric_ports(&message.replicas);
    Ok((
        Entity::CloneSession(session),
        ObjectNote::Session(session_id, numeric),
    ))
}

fn replicas(messages: &[m::Replica], what: &str) -> Result<Vec<Replica>, ControlError> {
    let replicas = messages.iter().map(|message| {
        refuse!(
            !message.backup_replicas.is_empty() => Unimplemented,
            "{what}: backup replicas are not supported"
        );
        let port = match &message.port {
            None => return Err(invalid(format!("{what}: a replica has no port"))),
            Some(m::PortKind::Port(bytes)) => {
                let port = values::number(bytes, PORT_BITS, PORT_BITS);
                let port = port.map_err(|why| out_of_range(format!("{what}: port: {why}")))?;
                port.low_u64() as u32
            }
            Some(m::PortKind::Number(port)) if *port > most(PORT_BITS) => {
                return Err(out_of_range(format!(
                    "{what}: port {port} does not fit into {PORT_BITS} bits"
                )));
            }
            Some(m::PortKind::Number(port)) => *port,
        };
        let rid = u16::try_from(message.instance).map_err(|_| {
            let most = most(INSTANCE_BITS);
            let instance = message.instance;
            invalid(format!("{what}: instance {instance} is above {most}"))
        })?;
        Ok(Replica { port, rid })
    });
    replicas.collect()
}

/// The replicas that were given with the deprecated numeric port.
pub(crate) type NumericPorts = BTreeSet<(u32, u32)>;

fn numeric_ports(messages: &[m::Replica]) -> NumericPorts {
    let ports = messages.iter().filter_map(|message| match message.port {
        Some(m::PortKind::Number(port)) => Some((port, message.instance)),
        _ => None,
    });
    ports.collect()
}

fn replica_messages(replicas: &[Replica], numeric: Option<&NumericPorts>) -> Vec<m::Replica> {
    let messages = replicas.iter().map(|replica| {
        let (port, instance) = (replica.port, u32::from(replica.rid));
        m::Replica {
            instance,
            backup_replicas: Vec::new(),
            port: Some(
                match numeric.is_some_and(|n| n.contains(&(port, instance))) {
                    true => m::PortKind::Number(port),
                    false => m::PortKind::Port(values::bytestring_of(port.into())),
                },
            ),
        }
    });
    messages.collect()
}
