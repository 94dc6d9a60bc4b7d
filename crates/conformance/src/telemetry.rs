//! Histories of INT: packets with and without its headers, right and damaged, from ports in the domain and at its edge, and what a switch
//! must be told so that sources, transit switches and sinks all have some. It does not know the programs' results.

use crate::choices::Choices;
use crate::frames::{self, ADDRESSES};
use crate::history::Dialect;
use engine::control::{CloneSession, Entity, Entry, Operation, Replica, Update};
use ir::{ActionCall, Bits, KeyMatch, Program, TableId, ValueSetId};

/// The DSCP by which other domains mark packets with INT.
const DSCP: u8 = 0x17;

/// The ports that lead to nodes of the domain.
const DOMAIN_PORTS: [u32; 3] = [1, 3, 7];

/// The UDP port that marks packets with INT in the thesis's format.
const THESIS_PORT: u16 = 1337;

/// Returns the dialect for histories of In-band Network Telemetry (INT) v2.1.
pub fn dialect() -> Dialect {
    Dialect {
        frame,
        param,
        first,
    }
}

/// Returns the dialect for histories of the thesis's In-band Network Telemetry.
pub fn thesis_dialect() -> Dialect {
    Dialect {
        frame: thesis_frame,
        param,
        first,
    }
}

fn param(choices: &mut Choices<'_>, name: &str) -> Option<u64> {
    Some(match name {
        "mode" => choices.pick(&[1, 1, 1, 3, 15, 0]),
        "npt" => choices.pick(&[0, 0, 1, 2, 3]),
        "sampling" => choices.pick(&[0x10000, 0x10000, 0x8000, 0]),
        "hops" => choices.pick(&[8, 8, 1, 0]),
        "hop_ml" => choices.pick(&[4, 8, 1, 14, 31]),
        "instructions" => choices.pick(&[0x8000, 0xfc00, 0xff81, 0x7f00, 0xffff, 0x0001]),
        "link_mtu" => choices.pick(&[1500, 9000, 120, 80]),
        "threshold" => choices.pick(&[0, 0, 1]),
        "dst_port" | "src_port" => u64::from(choices.u16() & 3),
        _ => return None,
    })
}

/// Returns updates that make the switch part of an INT domain: the ports of the domain and of its edge, the clone
/// sessions, and the destination of reports. Leaves out those for which the program has no object.
fn first(choices: &mut Choices<'_>, program: &Program) -> Vec<Update> {
    let (mode, npt) = (choices.pick(&[1, 1, 1, 3, 15]), choices.pick(&[0, 0, 1, 2]));
    let changes_only = u64::from(choices.one_in(2));
    let mut updates = Vec::new();
    let mut tell = |operation, entity| updates.push(Update { operation, entity });
    for set in 0..program.value_sets.len() as u32 {
        let members = DOMAIN_PORTS.map(|port| vec![KeyMatch::Value(bits(9, port))]);
        let entity = Entity::ValueSet {
            value_set: ValueSetId(set),
            members: members.to_vec(),
        };
        tell(Operation::Modify, entity);
    }
    // The thesis has a session for each port, 1000 more than its number.
    let sessions = [(1, 2)].into_iter().chain((0..8).map(|p| (1000 + p, p)));
    for (session_id, port) in sessions {
        let entity = Entity::CloneSession(CloneSession {
            session_id,
            replicas: vec![Replica { port, rid: 0 }],
            packet_length_bytes: 0,
            class_of_service: 0,
        });
        tell(Operation::Insert, entity);
    }
    let table = |name: &str| {
        let found = program.tables.iter().position(|t| t.name.ends_with(name));
        found.map(|index| TableId(index as u32))
    };
    let call = |name: &str, args: &dyn Fn(&str) -> u64| {
        let action = program
            .actions
            .iter()
            .position(|a| a.name.ends_with(name))?;
        let params = &program.actions[action].params;
        let argument = |param: &ir::ActionParam| {
            let width = program.slots[param.slot.index()].width;
            Bits::from_u64(64, args(&param.name)).resize(width)
        };
        Some(ActionCall {
            action: ir::ActionId(action as u32),
            args: params.iter().map(argument).collect(),
        })
    };
    if let (Some(table), Some(call)) = (
        table(".report_settings"),
        call(".report_to", &|name| match name {
            "queue_instructions" => 0x7f00,
            "dst_port" | "src_port" => 2,
            "changes_only" => changes_only,
            name if name.ends_with("addr") => 0x0a00_0102,
            _ => 1,
        }),
    ) {
        let entity = Entity::DefaultAction {
            table,
            action: Some(call),
            note: None,
        };
        tell(Operation::Modify, entity);
    }
    let mut insert = |in_table: &str,
                      action: &str,
                      matches: Vec<KeyMatch>,
                      priority: i32,
                      args: &dyn Fn(&str) -> u64| {
        if let (Some(table), Some(call)) = (table(in_table), call(action, args)) {
            let entry = Entry::new(matches, priority, call);
            tell(Operation::Insert, Entity::TableEntry { table, entry });
        }
    };
    // Two ports at the edge, and two inside, one of which is too narrow for most packets to grow.
    for (port, link_mtu, is_edge) in [(0, 1500, 1), (1, 90, 0), (2, 1500, 1), (3, 1500, 0)] {
        let settings = |name: &str| match name {
            "link_mtu" => link_mtu,
            "is_edge" => is_edge,
            _ => 0,
        };
        insert(
            ".port_settings",
            ".configure",
            vec![KeyMatch::Value(bits(9, port))],
            0,
            &settings,
        );
    }
    for (prefix, port) in [(0x0a00_0000, 1), (0x0a01_0000, 3), (0xc0a8_0000, 2)] {
        let route = KeyMatch::Prefix {
            value: bits(32, prefix),
            prefix_len: 16,
        };
        insert(".ipv4_lpm", ".forward", vec![route], 0, &|name| {
            if name == "port" { port } else { 2 }
        });
    }
    for (prefix, port) in [(0, 3), (2, 2)] {
        let route = KeyMatch::Prefix {
            value: Bits::from_u64(64, prefix).resize(128),
            prefix_len: 127,
        };
        insert(".ipv6_lpm", ".forward_v6", vec![route], 0, &|name| {
            if name == "port" { port } else { 2 }
        });
    }
    for (list, address) in [(".watchlist", 32), (".watchlist_v6", 128)] {
        let anything = [1, address, address, 8, 16, 16].map(|width| KeyMatch::Masked {
            value: Bits::zero(width),
            mask: Bits::zero(width),
        });
        insert(list, ".watch", anything.to_vec(), 1, &|name| match name {
            "mode" => mode,
            "npt" => npt,
            "instructions" => 0xff81,
            "hop_ml" => 14,
            "hops" => 8,
            "sampling" => 0x10000,
            "domain_id" => 7,
            _ => 1,
        });
    }
    updates
}

fn bits(width: u32, value: u32) -> Bits {
    Bits::from_u64(width, u64::from(value))
}

/// Generates a TCP or UDP frame with or without the headers of INT v2.1, or a frame as [`frames::frame`]
/// generates it.
fn frame(choices: &mut Choices<'_>, from_controller: bool) -> Vec<u8> {
    if from_controller || choices.one_in(4) {
        return frames::frame(choices, from_controller);
    }
    let is_int = choices.one_in(2);
    let tcp = choices.one_in(3);
    let length = choices.below(40) as usize;
    let mut body = choices.bytes(length);
    if is_int {
        body.splice(0..0, int_headers(choices));
    }
    // A quarter of the ports is the one that indicates INT, where a port does.
    let port = match is_int {
        true => 3,
        false => choices.u16() & 3,
    };
    let dscp = if is_int && !choices.one_in(8) {
        DSCP
    } else {
        0
    };
    ip_frame(choices, dscp, tcp, port, &body)
}

/// Generates the shim header and an INT-MD or INT-MX header, with the metadata that earlier nodes have pushed.
fn int_headers(choices: &mut Choices<'_>) -> Vec<u8> {
    let (hop_ml, instructions) = choices.pick(&[
        (1u8, 0x8000u16),
        (4, 0xf000),
        (8, 0xfc00),
        (14, 0xff81),
        (2, 0xfc00),
    ]);
    let hops = choices.below(4) as usize;
    let is_md = !choices.one_in(4);
    let pushed = if is_md { hops * usize::from(hop_ml) } else { 0 };
    let kind = match choices.below(16) {
        0 => choices.byte() & 15,
        _ if is_md => 1,
        _ => 3,
    };
    let npt = choices.pick(&[0, 0, 1, 2]);
    let length = match choices.below(16) {
        0 => choices.byte(),
        _ => 3 + pushed as u8,
    };
    let mut found = vec![kind << 4 | npt << 2, length];
    found.extend(choices.pick(&[0u16, 17, 6, 2000]).to_be_bytes());
    let version = if choices.one_in(16) { 1 } else { 2u8 };
    let flags = if choices.one_in(4) {
        choices.byte() & 14
    } else {
        0
    };
    let remaining = choices.pick(&[8, 1, 0]);
    found.extend([version << 4 | flags, 0, hop_ml, remaining]);
    found.extend(instructions.to_be_bytes());
    found.extend([0, 7, 0, 0, 0, 0]);
    found.extend(choices.bytes(4 * pushed));
    found
}

/// Generates a UDP packet with or without the thesis's headers, or a frame as [`frames::frame`] generates it.
fn thesis_frame(choices: &mut Choices<'_>, from_controller: bool) -> Vec<u8> {
    if from_controller || choices.one_in(4) {
        return frames::frame(choices, from_controller);
    }
    let length = choices.below(40) as usize;
    let mut body = choices.bytes(length);
    let is_int = choices.one_in(2);
    if is_int {
        let hops = choices.below(4) as u8;
        let said = if choices.one_in(16) {
            choices.byte()
        } else {
            hops
        };
        let mut headers = vec![said, 0, 9];
        headers.extend(choices.bytes(12 * usize::from(hops)));
        body.splice(0..0, headers);
    }
    let port = match is_int {
        true => THESIS_PORT,
        false => choices.pick(&[1, 2, 1338]),
    };
    ip_frame(choices, 0, false, port, &body)
}

/// Generates a TCP or UDP packet over IPv4 or IPv6 with the payload `body`, with mostly correct lengths and
/// checksums. `tcp` chooses TCP rather than UDP, `dscp` and `port` are the DSCP and the destination port.
fn ip_frame(choices: &mut Choices<'_>, dscp: u8, tcp: bool, port: u16, body: &[u8]) -> Vec<u8> {
    let mut segment = (choices.u16() & 3).to_be_bytes().to_vec();
    segment.extend(port.to_be_bytes());
    match tcp {
        true => segment.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0x12, 0x34, 0, 0]),
        false => {
            segment.extend((8 + body.len() as u16).to_be_bytes());
            segment.extend(choices.pick(&[0u16, 0x1234]).to_be_bytes());
        }
    }
    segment.extend(body);
    let protocol = if tcp { 6 } else { 17 };
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if choices.one_in(4) {
        frame.extend([0x86, 0xdd, 0x60 | dscp >> 2, dscp << 6, 0, 0]);
        frame.extend((segment.len() as u16).to_be_bytes());
        frame.extend([protocol, choices.pick(&[64, 64, 1])]);
        for _ in 0..2 {
            frame.extend([0; 15]);
            frame.push(choices.below(4) as u8);
        }
    } else {
        frame.extend([0x08, 0x00]);
        let mut header = vec![0x45, dscp << 2];
        header.extend((20 + segment.len() as u16).to_be_bytes());
        header.extend([0, 3, 0, 0, choices.pick(&[64, 64, 64, 1]), protocol, 0, 0]);
        header.extend(choices.pick(&ADDRESSES).to_be_bytes());
        header.extend(choices.pick(&ADDRESSES).to_be_bytes());
        let checksum = frames::checksum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend(header);
    }
    frame.extend(segment);
    frames::damage(choices, &mut frame);
    frame
}
