//! Multicast groups and clone sessions (specification, "PacketReplicationEngineEntry").
//!
//! Ports are the architecture's, not translated. The deprecated numeric ports are taken too, and given back to who used them.

use super::EntityKind;
use crate::answer::{Answer, Source};
use crate::errors::{invalid, out_of_range};
use crate::messages::{messages, oneofs};
use crate::pipeline::{Noted, ObjectNote, Pipeline, missing};
use crate::plan::Plan;
use crate::served::Served;
use crate::values;
use bytes::Bytes;
use engine::control::{self, CloneSession, ControlError, Entity, MulticastGroup, Operation};
use engine::refuse;
use std::collections::BTreeSet;

messages! {
    ReplicationEntry { | kind: ReplicationKind = "ReplicationKind" "1, 2"; }
    Replica {
        instance: u32 = (uint32) "2";
        backup_replicas: Vec<proto::p4runtime::BackupReplica> = (message, repeated) "4";
        | port: PortKind = "PortKind" "1, 3";
    }
    MulticastGroupEntry {
        group_id: u32 = (uint32) "1";
        replicas: Vec<Replica> = (message, repeated) "2";
        metadata: Bytes = (bytes = "bytes") "3";
    }
    CloneSessionEntry {
        session_id: u32 = (uint32) "1";
        replicas: Vec<Replica> = (message, repeated) "2";
        class_of_service: u32 = (uint32) "3";
        packet_length_bytes: i32 = (int32) "4";
    }
}

oneofs! {
    ReplicationKind {
        Group: MulticastGroupEntry = (message) "1" "multicast_group_entry";
        Session: CloneSessionEntry = (message) "2" "clone_session_entry";
    }
    PortKind {
        Number: u32 = (uint32) "1" "egress_port";
        Port: Bytes = (bytes = "bytes") "3" "port";
    }
}

const INSTANCE_BITS: u32 = 16;
const GROUP_BITS: u32 = 16;
const CLASS_BITS: u32 = 3;

/// Returns the largest number that has `bits` bits.
pub(super) fn most(bits: u32) -> u32 {
    u32::MAX >> (u32::BITS - bits)
}

impl Served for ReplicationEntry {
    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        match &self.kind {
            Some(ReplicationKind::Group(group)) => multicast_group(pipeline, operation, group),
            Some(ReplicationKind::Session(session)) => clone_session(pipeline, operation, session),
            None => Err(no_type()),
        }
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        let pipeline = source.pipeline;
        match &self.kind {
            Some(ReplicationKind::Group(wanted)) => {
                let groups = source.switch.multicast_groups();
                let groups = groups.filter(|group| [0, group.group_id].contains(&wanted.group_id));
                let groups = groups.map(|group| multicast_message(pipeline, group));
                super::found(groups.collect(), wanted.group_id, |id| {
                    missing("multicast group", id)
                })
            }
            Some(ReplicationKind::Session(wanted)) => {
                let sessions = source.switch.clone_sessions();
                let sessions =
                    sessions.filter(|it| [0, it.session_id].contains(&wanted.session_id));
                let sessions = sessions.map(|session| session_message(pipeline, session));
                super::found(sessions.collect(), wanted.session_id, |id| {
                    missing("clone session", id)
                })
            }
            None => Err(no_type()),
        }
    }

    fn at_once(&self) -> Option<(u32, u32)> {
        Some(match self.kind.as_ref()? {
            ReplicationKind::Group(group) => (0, group.group_id),
            ReplicationKind::Session(session) => (1, session.session_id),
        })
    }
}

fn no_type() -> ControlError {
    invalid("the packet replication engine entry has no type")
}

fn multicast_group(
    pipeline: &Pipeline,
    operation: Operation,
    message: &MulticastGroupEntry,
) -> Result<Plan, ControlError> {
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
        _ => replicas(pipeline, &message.replicas, &what)?,
    };
    let distinct: BTreeSet<(u32, u16)> = replicas.iter().map(|r| (r.port, r.rid)).collect();
    refuse!(
        distinct.len() != replicas.len() => InvalidArgument,
        "{what}: two replicas have the same port and instance"
    );
    let note = ObjectNote {
        // Not a part of the request, which would stay in memory.
        metadata: message.metadata.to_vec().into(),
        numeric: numeric_ports(&message.replicas),
    };
    let entity = Entity::MulticastGroup(MulticastGroup { group_id, replicas });
    Ok(Plan::noted(
        operation,
        entity,
        Noted::Multicast(group_id),
        note,
    ))
}

fn clone_session(
    pipeline: &Pipeline,
    operation: Operation,
    message: &CloneSessionEntry,
) -> Result<Plan, ControlError> {
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
        session.replicas = replicas(pipeline, &message.replicas, &what)?;
    }
    let note = ObjectNote {
        metadata: Bytes::new(),
        numeric: numeric_ports(&message.replicas),
    };
    let entity = Entity::CloneSession(session);
    Ok(Plan::noted(
        operation,
        entity,
        Noted::Session(session_id),
        note,
    ))
}

fn replicas(
    pipeline: &Pipeline,
    messages: &[Replica],
    what: &str,
) -> Result<Vec<control::Replica>, ControlError> {
    let port_bits = pipeline.port_bits();
    let replicas = messages.iter().map(|message| {
        refuse!(
            !message.backup_replicas.is_empty() => Unimplemented,
            "{what}: backup replicas are not supported"
        );
        let port = match &message.port {
            None => return Err(invalid(format!("{what}: a replica has no port"))),
            Some(PortKind::Port(bytes)) => {
                let port = values::number(bytes, port_bits, port_bits);
                let port = port.map_err(|why| out_of_range(format!("{what}: port: {why}")))?;
                port.low_u64() as u32
            }
            Some(PortKind::Number(port)) if *port > most(port_bits) => {
                return Err(out_of_range(format!(
                    "{what}: port {port} does not fit into {port_bits} bits"
                )));
            }
            Some(PortKind::Number(port)) => *port,
        };
        let rid = u16::try_from(message.instance).map_err(|_| {
            let most = most(INSTANCE_BITS);
            let instance = message.instance;
            invalid(format!("{what}: instance {instance} is above {most}"))
        })?;
        Ok(control::Replica { port, rid })
    });
    replicas.collect()
}

/// Returns the port and the instance of each replica whose port is given in the deprecated numeric form
/// (`egress_port`).
fn numeric_ports(messages: &[Replica]) -> BTreeSet<(u32, u32)> {
    let ports = messages.iter().filter_map(|message| match message.port {
        Some(PortKind::Number(port)) => Some((port, message.instance)),
        _ => None,
    });
    ports.collect()
}

fn multicast_message(pipeline: &Pipeline, group: &MulticastGroup) -> EntityKind {
    let note = pipeline.object_note(Noted::Multicast(group.group_id));
    let kind = ReplicationKind::Group(MulticastGroupEntry {
        group_id: group.group_id,
        replicas: replica_messages(&group.replicas, &note),
        metadata: note.metadata,
    });
    EntityKind::Replication(ReplicationEntry { kind: Some(kind) })
}

fn session_message(pipeline: &Pipeline, session: &CloneSession) -> EntityKind {
    let note = pipeline.object_note(Noted::Session(session.session_id));
    let kind = ReplicationKind::Session(CloneSessionEntry {
        session_id: session.session_id,
        replicas: replica_messages(&session.replicas, &note),
        class_of_service: session.class_of_service.into(),
        packet_length_bytes: session.packet_length_bytes as i32,
    });
    EntityKind::Replication(ReplicationEntry { kind: Some(kind) })
}

fn replica_messages(replicas: &[control::Replica], note: &ObjectNote) -> Vec<Replica> {
    let messages = replicas.iter().map(|replica| {
        let (port, instance) = (replica.port, u32::from(replica.rid));
        let kind = match note.numeric.contains(&(port, instance)) {
            true => PortKind::Number(port),
            false => PortKind::Port(values::bytestring_of(port.into())),
        };
        Replica {
            instance,
            backup_replicas: Vec::new(),
            port: Some(kind),
        }
    });
    messages.collect()
}
