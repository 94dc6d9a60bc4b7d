//! The messages that are declared by hand against those that are generated from the official definitions: each reads what the other
//! writes. Literals name every field of the official messages, so that a field that a later version adds cannot be left out.

#![allow(deprecated, reason = "deprecated fields are served too")]

use crate::entities::{Entity, ReadRequest, Update};
use crate::messages as m;
use bytes::Bytes;
use prost::Message;
use proto::p4runtime as p4;
use std::fmt::Debug;

/// Asserts that a crate's own message type preserves all contents of an official message.
fn check<Ours: Message + Default, Official: Message + Default + PartialEq + Debug>(all: Official) {
    let ours = Ours::decode(&all.encode_to_vec()[..]).expect("a message of ours");
    let again = Official::decode(&ours.encode_to_vec()[..]).expect("an official message");
    assert_eq!(again, all);
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn action() -> p4::Action {
    let param = |param_id| p4::action::Param {
        param_id,
        value: bytes("param"),
    };
    p4::Action {
        action_id: 1,
        params: vec![param(2), param(3)],
    }
}

fn counter_data(byte_count: i64) -> Option<p4::CounterData> {
    Some(p4::CounterData {
        byte_count,
        packet_count: 5,
    })
}

fn meter_config() -> Option<p4::MeterConfig> {
    Some(p4::MeterConfig {
        cir: 1,
        cburst: 2,
        pir: 3,
        pburst: 4,
        eburst: 5,
    })
}

fn meter_counts() -> Option<p4::MeterCounterData> {
    Some(p4::MeterCounterData {
        green: counter_data(1),
        yellow: counter_data(2),
        red: counter_data(3),
    })
}

fn matches() -> Vec<p4::FieldMatch> {
    use p4::field_match::{Exact, FieldMatchType as Type, Lpm, Optional, Range, Ternary};
    let kinds = [
        Type::Exact(Exact { value: bytes("a") }),
        Type::Ternary(Ternary {
            value: bytes("b"),
            mask: bytes("c"),
        }),
        Type::Lpm(Lpm {
            value: bytes("d"),
            prefix_len: 6,
        }),
        Type::Range(Range {
            low: bytes("e"),
            high: bytes("f"),
        }),
        Type::Optional(Optional { value: bytes("g") }),
        Type::Other(any()),
    ];
    let field = |(field_id, kind)| p4::FieldMatch {
        field_id,
        field_match_type: Some(kind),
    };
    (7..).zip(kinds).map(field).collect()
}

fn any() -> proto::Any {
    proto::Any {
        type_url: "example.org/x".into(),
        value: b"y".to_vec(),
    }
}

fn actions() -> Vec<p4::table_action::Type> {
    use p4::action_profile_action::WatchKind;
    use p4::table_action::Type;
    let part = |watch_kind| p4::ActionProfileAction {
        action: Some(action()),
        weight: 3,
        watch_kind: Some(watch_kind),
    };
    vec![
        Type::Action(action()),
        Type::ActionProfileMemberId(4),
        Type::ActionProfileGroupId(5),
        Type::ActionProfileActionSet(p4::ActionProfileActionSet {
            group_action: Some(action()),
            action_profile_actions: vec![
                part(WatchKind::Watch(6)),
                part(WatchKind::WatchPort(bytes("port"))),
            ],
            action_selection_mode: 1,
            size_semantics: 2,
        }),
    ]
}

fn table_entry(kind: p4::table_action::Type) -> p4::TableEntry {
    p4::TableEntry {
        table_id: 1,
        r#match: matches(),
        action: Some(p4::TableAction { r#type: Some(kind) }),
        priority: 2,
        controller_metadata: 3,
        meter_config: meter_config(),
        counter_data: counter_data(4),
        meter_counter_data: meter_counts(),
        is_default_action: true,
        idle_timeout_ns: 5,
        time_since_last_hit: Some(p4::table_entry::IdleTimeout { elapsed_ns: 6 }),
        metadata: bytes("metadata"),
        is_const: true,
    }
}

/// Returns data of all supported kinds. Of unsupported data, only the kind is read.
fn data() -> Vec<p4::P4Data> {
    use p4::p4_data::Data;
    let member = || p4::P4Data {
        data: Some(Data::Bitstring(bytes("bits"))),
    };
    let members = || p4::P4StructLike {
        members: vec![member(), member()],
    };
    let kinds = [
        Data::Bitstring(bytes("bits")),
        Data::Varbit(p4::P4Varbit::default()),
        Data::Bool(true),
        Data::Tuple(members()),
        Data::Struct(members()),
        Data::Header(p4::P4Header::default()),
        Data::HeaderUnion(p4::P4HeaderUnion::default()),
        Data::HeaderStack(p4::P4HeaderStack::default()),
        Data::HeaderUnionStack(p4::P4HeaderUnionStack::default()),
        Data::Enum("enum".into()),
        Data::Error("error".into()),
        Data::EnumValue(bytes("value")),
    ];
    kinds.map(|kind| p4::P4Data { data: Some(kind) }).into()
}

fn replicas() -> Vec<p4::Replica> {
    use p4::replica::PortKind;
    let replica = |port_kind| p4::Replica {
        instance: 2,
        backup_replicas: vec![p4::BackupReplica {
            port: bytes("backup"),
            instance: 3,
        }],
        port_kind: Some(port_kind),
    };
    vec![
        replica(PortKind::EgressPort(1)),
        replica(PortKind::Port(bytes("port"))),
    ]
}

fn profile_entities() -> Vec<p4::entity::Entity> {
    use p4::action_profile_group::{Member, member::WatchKind};
    use p4::entity::Entity;
    let member = |watch_kind| Member {
        member_id: 2,
        weight: 3,
        watch_kind: Some(watch_kind),
    };
    vec![
        Entity::ActionProfileMember(p4::ActionProfileMember {
            action_profile_id: 1,
            member_id: 2,
            action: Some(action()),
        }),
        Entity::ActionProfileGroup(p4::ActionProfileGroup {
            action_profile_id: 1,
            group_id: 2,
            members: vec![
                member(WatchKind::Watch(4)),
                member(WatchKind::WatchPort(bytes("port"))),
            ],
            max_size: 5,
        }),
    ]
}

fn entities() -> Vec<p4::Entity> {
    use p4::entity::Entity;
    use p4::packet_replication_engine_entry::Type;
    let replication = |kind| {
        Entity::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry {
            r#type: Some(kind),
        })
    };
    let index = || Some(p4::Index { index: 7 });
    let entry = || actions().pop().map(table_entry);
    let mut kinds = profile_entities();
    kinds.extend(
        actions()
            .into_iter()
            .map(|a| Entity::TableEntry(table_entry(a))),
    );
    kinds.extend(data().into_iter().map(|data| {
        Entity::RegisterEntry(p4::RegisterEntry {
            register_id: 1,
            index: index(),
            data: Some(data),
        })
    }));
    kinds.extend([
        Entity::MeterEntry(p4::MeterEntry {
            meter_id: 1,
            index: index(),
            config: meter_config(),
            counter_data: meter_counts(),
        }),
        Entity::DirectMeterEntry(p4::DirectMeterEntry {
            table_entry: entry(),
            config: meter_config(),
            counter_data: meter_counts(),
        }),
        Entity::CounterEntry(p4::CounterEntry {
            counter_id: 1,
            index: index(),
            data: counter_data(2),
        }),
        Entity::DirectCounterEntry(p4::DirectCounterEntry {
            table_entry: entry(),
            data: counter_data(3),
        }),
        replication(Type::MulticastGroupEntry(p4::MulticastGroupEntry {
            multicast_group_id: 1,
            replicas: replicas(),
            metadata: bytes("metadata"),
        })),
        replication(Type::CloneSessionEntry(p4::CloneSessionEntry {
            session_id: 1,
            replicas: replicas(),
            class_of_service: 4,
            packet_length_bytes: 5,
        })),
        Entity::ValueSetEntry(p4::ValueSetEntry {
            value_set_id: 1,
            members: vec![p4::ValueSetMember { r#match: matches() }],
        }),
        Entity::DigestEntry(p4::DigestEntry {
            digest_id: 1,
            config: Some(p4::digest_entry::Config {
                max_timeout_ns: 2,
                max_list_size: 3,
                ack_timeout_ns: 4,
            }),
        }),
    ]);
    let entity = |kind| p4::Entity { entity: Some(kind) };
    kinds.into_iter().map(entity).collect()
}

#[test]
fn entities_are_the_official_ones() {
    for entity in entities() {
        check::<Entity, _>(entity);
    }
}

#[test]
fn requests_are_the_official_ones() {
    let updates = entities()
        .into_iter()
        .zip(1..)
        .map(|(entity, kind)| p4::Update {
            r#type: kind % 4,
            entity: Some(entity),
        });
    let updates: Vec<p4::Update> = updates.collect();
    for update in updates.clone() {
        check::<Update, _>(update);
    }
    check::<m::RawWriteRequest, _>(p4::WriteRequest {
        device_id: 1,
        role_id: 2,
        role: "role".into(),
        election_id: Some(p4::Uint128 { high: 3, low: 4 }),
        updates,
        atomicity: 2,
    });
    check::<ReadRequest, _>(p4::ReadRequest {
        device_id: 1,
        role: "role".into(),
        entities: entities(),
    });
}

#[test]
fn messages_of_the_stream_are_the_official_ones() {
    let metadata = |metadata_id| p4::PacketMetadata {
        metadata_id,
        value: bytes("value"),
    };
    check::<m::PacketOut, _>(p4::PacketOut {
        payload: bytes("payload"),
        metadata: vec![metadata(1), metadata(2)],
    });
    check::<m::PacketOut, _>(p4::PacketIn {
        payload: bytes("payload"),
        metadata: vec![metadata(1), metadata(2)],
    });
    check::<m::DigestList, _>(p4::DigestList {
        digest_id: 1,
        list_id: 2,
        data: data(),
        timestamp: 3,
    });
    check::<m::IdleTimeoutNotification, _>(p4::IdleTimeoutNotification {
        table_entry: actions().into_iter().map(table_entry).collect(),
        timestamp: 1,
    });
}
