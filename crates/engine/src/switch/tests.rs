//! The v1model architecture around the pipeline: the receivers of copies, their order and their metadata.

use super::*;
use crate::control::{CloneSession, Entity, MulticastGroup, Operation, Replica, Update};
use crate::test_programs::{Bodies, ports_and_bytes, send, switch};
use expect_test::expect;

fn replicas(list: &[(u32, u16)]) -> Vec<Replica> {
    list.iter()
        .map(|&(port, rid)| Replica { port, rid })
        .collect()
}

fn insert(switch: &mut Switch, entity: Entity) {
    let operation = Operation::Insert;
    switch.write(Update { operation, entity }).expect("is new");
}

fn group(switch: &mut Switch, group_id: u32, list: &[(u32, u16)]) {
    let replicas = replicas(list);
    insert(
        switch,
        Entity::MulticastGroup(MulticastGroup { group_id, replicas }),
    );
}

fn session(switch: &mut Switch, session_id: u32, list: &[(u32, u16)], packet_length_bytes: u32) {
    insert(
        switch,
        Entity::CloneSession(CloneSession {
            session_id,
            replicas: replicas(list),
            packet_length_bytes,
            class_of_service: 3,
        }),
    );
}

#[test]
fn a_switch_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&switch("", ""));
}

#[test]
fn unicast_with_standard_metadata() {
    // Ingress: port, length, time; egress adds its own.
    let mut switch = switch(
        "assign %18 = concat(slice(%0, 7, 0), slice(%4, 7, 0)) assign %20 = slice(%9, 31, 0)
         set_valid h1 assign %1 = 9w3",
        "assign %17 = concat(slice(%2, 3, 0), slice(%3, 3, 0))
         assign %20 = concat(slice(%20, 15, 0), slice(%10, 15, 0))",
    );
    // Set valid last keeps the data that was written before.
    let out = send(&mut switch, &[1, 2, 3, 4]);
    assert_eq!(
        out,
        [(3, vec![0x30, 5, 4, 0x03, 0xe8, 0x03, 0xe8, 4])],
        "port 3, normal; port 5, 4 bytes; 1000 us"
    );
}

#[test]
fn the_drop_port_drops_after_ingress_and_after_egress() {
    let mut ingress = switch("assign %1 = 9w511", "");
    assert_eq!(send(&mut ingress, &[1, 2, 3]), []);
    assert_eq!(ingress.drops()[&DropReason::IngressDrop], 1);
    let mut egress = switch("assign %1 = 9w1", "assign %1 = 9w511");
    assert_eq!(send(&mut egress, &[1, 2, 3]), []);
    assert_eq!(egress.drops()[&DropReason::EgressDrop], 1);
    // Egress cannot choose another port, and starts without the drop port.
    let mut moved = switch(
        "assign %1 = 9w1",
        "assign %18 = zext(%1, 16) assign %1 = 9w2 assign %2 = 9w4",
    );
    assert_eq!(send(&mut moved, &[1, 2, 3]), [(1, vec![1, 0, 0])]);
}

#[test]
fn multicast_makes_copies_in_the_order_of_the_group() {
    let ingress = "assign %11 = zext(%17, 16) assign %1 = 9w511 assign %26 = %18";
    let egress = "assign %18 = concat(slice(%12, 7, 0), concat(slice(%3, 3, 0), slice(%2, 3, 0)))
                  assign %17 = slice(%26, 7, 0)";
    let mut switch = switch(ingress, egress);
    group(&mut switch, 7, &[(3, 9), (1, 8), (3, 2)]);
    group(&mut switch, 8, &[]);
    assert_eq!(
        send(&mut switch, &[7, 0, 0x66, 0x77]),
        [
            (3, vec![0x66, 9, 0x53, 0x77]),
            (1, vec![0x66, 8, 0x51, 0x77]),
            (3, vec![0x66, 2, 0x53, 0x77]),
        ]
    );
    assert_eq!(send(&mut switch, &[8, 0, 0]), []);
    assert_eq!(send(&mut switch, &[9, 0, 0]), []);
    assert_eq!(switch.drops()[&DropReason::EmptyMulticastGroup], 2);
    assert_eq!(send(&mut switch, &[0, 0, 0]), [], "group 0 is no group");
    assert_eq!(switch.drops()[&DropReason::IngressDrop], 1);
}

#[test]
fn a_clone_from_ingress_is_the_packet_as_it_arrived() {
    let ingress = "assign %26 = 16w0x1111 assign %27 = 16w0x2222 assign %18 = 16w0xffff
                   if eq(%17, 8w1) { clone i2e 32w5 }
                   if eq(%17, 8w2) { clone i2e 32w5 preserve l0 }
                   if eq(%17, 8w3) { clone i2e 32w99 }
                   assign %26 = 16w0x3333 assign %1 = 9w511";
    let egress =
        "set_valid h1 assign %20 = concat(or(%26, %27), concat(slice(%3, 7, 0), slice(%2, 7, 0)))";
    let mut switch = switch(ingress, egress);
    session(&mut switch, 5, &[(2, 0), (4, 1)], 0);
    let out = send(&mut switch, &[1, 2, 3, 0xaa]);
    assert_eq!(
        out,
        [
            (2, vec![1, 2, 3, 0, 0, 1, 2, 0xaa]),
            (4, vec![1, 2, 3, 0, 0, 1, 4, 0xaa])
        ],
        "the original is dropped, the clones are not"
    );
    // The field list has its final value.
    let out = send(&mut switch, &[2, 2, 3, 0xaa]);
    assert_eq!(out[0], (2, vec![2, 2, 3, 0x33, 0x33, 1, 2, 0xaa]));
    assert_eq!(send(&mut switch, &[3, 0, 0]), []);
    assert_eq!(switch.drops()[&DropReason::UnknownCloneSession], 1);
    assert_eq!(switch.drops()[&DropReason::IngressDrop], 3);
}

#[test]
fn clones_come_before_the_original_and_are_cut_to_length() {
    let mut switch = switch(
        "clone i2e 32w5 assign %1 = 9w1",
        "assign %18 = zext(%15, 16)",
    );
    session(&mut switch, 5, &[(2, 0)], 4);
    assert_eq!(
        send(&mut switch, &[1, 2, 3, 4, 5, 6]),
        [(2, vec![1, 0, 3, 4]), (1, vec![1, 0, 0, 4, 5, 6])],
        "the class of service is the clone's priority"
    );
    // Headers are never cut.
    let mut short = self::switch("clone i2e 32w5 assign %1 = 9w1", "");
    session(&mut short, 5, &[(2, 0)], 1);
    assert_eq!(send(&mut short, &[1, 2, 3, 4])[0], (2, vec![1, 2, 3]));
}

#[test]
fn a_clone_from_egress_is_the_packet_as_egress_left_it() {
    let ingress = "assign %26 = 16w0x1111 assign %27 = 16w0x2222 assign %1 = 9w1";
    let egress = "if eq(%3, 32w0) {
                      set_valid h1 assign %20 = 32w0x01020304 assign %18 = 16w0xbeef
                      clone e2e 32w5 preserve l0
                      assign %26 = 16w0x4444
                      if eq(%17, 8w9) { assign %1 = 9w511 }
                  } else {
                      assign %18 = add(%18, or(%26, %27)) assign %17 = slice(%4, 7, 0)
                  }";
    let mut switch = switch(ingress, egress);
    session(&mut switch, 5, &[(2, 0)], 0);
    let original = (1, vec![8, 0xbe, 0xef, 1, 2, 3, 4, 0x55]);
    let clone = (2, vec![8, 0x03, 0x33, 1, 2, 3, 4, 0x55]);
    assert_eq!(send(&mut switch, &[8, 0, 0, 0x55]), [original, clone]);
    // The clone is made even if the original is dropped.
    let clone = (2, vec![8, 0x03, 0x33, 1, 2, 3, 4, 0x55]);
    assert_eq!(send(&mut switch, &[9, 0, 0, 0x55]), [clone]);
    assert_eq!(switch.drops()[&DropReason::EgressDrop], 1);
}

#[test]
fn resubmit_parses_the_original_again_and_wins_over_multicast() {
    let ingress = "if eq(%3, 32w0) {
                       assign %26 = 16w0x1234 assign %27 = 16w0x5678 assign %18 = 16w0
                       assign %11 = 16w7 resubmit preserve l0
                   } else {
                       assign %18 = add(%18, or(%26, %27)) assign %17 = slice(%3, 7, 0) assign %1 = %0
                   }";
    let mut switch = switch(ingress, "");
    group(&mut switch, 7, &[(1, 0)]);
    assert_eq!(
        send(&mut switch, &[1, 0, 1, 9]),
        [(5, vec![6, 0x12, 0x35, 9])],
        "type 6, the kept metadata, the port of arrival"
    );
}

#[test]
fn recirculate_parses_the_deparsed_packet_again() {
    // Each pass pushes nothing but grows the packet once by the extra header, which the parser then finds.
    let ingress = "if eq(%3, 32w4) { assign %26 = add(%26, 16w1) } assign %1 = 9w1";
    let egress = "if ult(%26, 16w3) {
                      set_valid h1 assign %17 = 8w0xee assign %20 = add(%20, 32w1) recirculate preserve l0
                  } else {
                      assign %18 = concat(slice(%3, 7, 0), slice(%4, 7, 0))
                  }";
    let mut switch = switch(ingress, egress);
    assert_eq!(
        send(&mut switch, &[1, 0, 0, 9]),
        [(1, vec![0xee, 0, 8, 0, 0, 0, 3, 9])],
        "three passes; instance type is normal in egress; eight bytes"
    );
    // Dropping wins over recirculating.
    let mut dropped = self::switch("assign %1 = 9w1", "recirculate assign %1 = 9w511");
    assert_eq!(send(&mut dropped, &[1, 0, 0]), []);
    assert_eq!(dropped.drops()[&DropReason::EgressDrop], 1);
}

#[test]
fn nothing_goes_round_for_ever() {
    for (ingress, egress) in [
        ("resubmit", ""),
        ("assign %1 = 9w1", "recirculate"),
        ("assign %1 = 9w1", "clone e2e 32w5 assign %1 = 9w511"),
    ] {
        let mut switch = switch(ingress, egress);
        session(&mut switch, 5, &[(1, 0)], 0);
        assert_eq!(send(&mut switch, &[1, 2, 3]), []);
        assert_eq!(
            switch.drops()[&DropReason::RecirculationLimit],
            1,
            "{ingress} {egress}"
        );
    }
    // Two copies in each round: the total is bounded, not only the length of a chain.
    let mut switch = switch("assign %11 = 16w1", "recirculate");
    group(&mut switch, 1, &[(1, 0), (2, 0)]);
    assert_eq!(send(&mut switch, &[1, 2, 3]), []);
    let dropped = switch.drops()[&DropReason::RecirculationLimit];
    assert!(
        (1..=2 * u64::from(MAX_WORK)).contains(&dropped),
        "{dropped}"
    );
    // The next packet has its own allowance.
    assert_eq!(send(&mut switch, &[1, 2, 3]), []);
    assert_eq!(switch.drops()[&DropReason::RecirculationLimit], 2 * dropped);
}

#[test]
fn replicas_of_copies_are_work() {
    // A clone of each clone, to many ports.
    let mut switch = switch("assign %1 = 9w1", "clone e2e 32w5");
    let replicas: Vec<_> = (0..1000).map(|rid| (2, rid)).collect();
    session(&mut switch, 5, &replicas, 0);
    let sent = send(&mut switch, &[1, 2, 3]).len();
    // The packet, a copy for each unit of work, and the first replica of each clone.
    assert!(
        (4096..=2 * 4096).contains(&sent),
        "{sent} packets come of one"
    );
    assert!(switch.drops()[&DropReason::RecirculationLimit] > 0);
    // The replicas of a packet that has made no pass are as many as its group has.
    let mut wide = self::switch("assign %11 = 16w1", "");
    let replicas: Vec<_> = (0..5000).map(|rid| (2, rid)).collect();
    group(&mut wide, 1, &replicas);
    assert_eq!(send(&mut wide, &[1, 2, 3]).len(), 5000);
}

#[test]
fn truncation_cuts_what_leaves() {
    let mut ingress = switch("truncate 32w5 assign %1 = 9w1", "set_valid h1");
    assert_eq!(
        send(&mut ingress, &[1, 2, 3, 4, 5, 6]),
        [(1, vec![1, 2, 3, 0, 0])]
    );
    let mut both = switch(
        "truncate 32w5 assign %1 = 9w1",
        "truncate 32w100 truncate 32w2 truncate 32w3",
    );
    assert_eq!(send(&mut both, &[1, 2, 3, 4, 5, 6]), [(1, vec![1, 2])]);
    let mut longer = switch("truncate 32w3 assign %1 = 9w1", "truncate 32w5");
    assert_eq!(send(&mut longer, &[1, 2, 3, 4, 5, 6]), [(1, vec![1, 2, 3])]);
}

#[test]
fn headers_are_pushed_and_popped() {
    let mut push = switch(
        "set_valid h1 assign %20 = 32w0xa1b2c3d4 assign %1 = 9w1",
        "",
    );
    let mut big = vec![1, 2, 3];
    big.extend([7; 1500]);
    let out = send(&mut push, &big);
    assert_eq!(out[0].1[..8], [1, 2, 3, 0xa1, 0xb2, 0xc3, 0xd4, 7]);
    assert_eq!(out[0].1.len(), 1507);
    let mut pop = switch("set_invalid h1 assign %1 = 9w1", "");
    assert_eq!(
        send(&mut pop, &[0xee, 2, 3, 4, 5, 6, 7, 8]),
        [(1, vec![0xee, 2, 3, 8])]
    );
    // Too short for the second header: the bytes that were not taken stay.
    assert_eq!(
        send(&mut pop, &[0xee, 2, 3, 4, 5]),
        [(1, vec![0xee, 2, 3, 4, 5])]
    );
    assert_eq!(send(&mut pop, &[]), [(1, vec![])]);
}

#[test]
fn egress_sees_the_length_with_new_headers() {
    let ingress = "if eq(%17, 8w1) { set_valid h1 set_valid h2 } assign %1 = 9w1";
    let mut switch = switch(ingress, "assign %18 = slice(%4, 15, 0)");
    assert_eq!(send(&mut switch, &[2, 0, 0, 9, 9])[0].1[2], 5);
    assert_eq!(send(&mut switch, &[1, 0, 0, 9, 9])[0].1[2], 5 + 4 + 2);
}

#[test]
fn counters_count_the_length_on_arrival_in_both_halves() {
    let mut switch = switch(
        "set_valid h1 count c0[32w0] assign %1 = 9w1",
        "count c0[32w1]",
    );
    send(&mut switch, &[1, 2, 3, 4]);
    for index in 0..2 {
        let cell = switch
            .read_counter(ir::CounterId(0), index)
            .expect("in range");
        assert_eq!((cell.packets, cell.bytes), (1, 4));
    }
}

#[test]
fn a_traffic_manager_may_queue_between_the_halves() {
    let ingress = "assign %11 = 16w1 assign %15 = 3w6";
    // enq_timestamp, deq_timedelta, enq_qdepth, deq_qdepth, priority, egress time
    let egress = "set_valid h1
        assign %17 = concat(5w0, %15)
        assign %18 = concat(slice(%6, 7, 0), slice(%8, 7, 0))
        assign %20 = concat(concat(slice(%5, 7, 0), slice(%7, 7, 0)), slice(%10, 15, 0))";
    let mut switch = switch(ingress, egress);
    group(&mut switch, 1, &[(1, 1), (2, 2)]);
    let mut copies = Vec::new();
    switch.ingress(
        Time::from(10_000_000_u64),
        0,
        Packet::new(&[0; 10]),
        &mut copies,
    );
    let found: Vec<_> = copies
        .iter()
        .map(|c| (c.port, c.rid, c.priority, c.bytes()))
        .collect();
    assert_eq!(found, [(1, 1, 6, 10), (2, 2, 6, 10)]);
    let mut copy = copies.remove(1);
    copy.enq_qdepth = 40;
    let mut emissions = Vec::new();
    switch.egress(Time::from(13_000_000_u64), copy, 41, &mut emissions);
    let [Emission::Output(output)] = &emissions[..] else {
        panic!("{emissions:?}");
    };
    assert_eq!(output.port, 2);
    assert_eq!(output.packet.bytes()[..7], [6, 40, 41, 10, 3, 0, 13]);
    // A recirculated packet comes back by itself.
    let mut again = self::switch(
        "assign %1 = 9w1",
        "if eq(%17, 8w1) { assign %17 = 8w2 recirculate }",
    );
    let (mut copies, mut emissions) = (Vec::new(), Vec::new());
    again.ingress(Time::ZERO, 0, Packet::new(&[1, 0, 0]), &mut copies);
    again.egress(Time::ZERO, copies.remove(0), 0, &mut emissions);
    let Some(Emission::Recirculated(packet)) = emissions.pop() else {
        panic!("is recirculated");
    };
    again.recirculate(Time::ZERO, packet, &mut copies);
    again.egress(Time::ZERO, copies.remove(0), 0, &mut emissions);
    assert!(matches!(&emissions[..], [Emission::Output(o)] if *o.packet.bytes() == [2, 0, 0]));
}

#[test]
fn digests_reach_the_control_plane_once() {
    let mut switch = switch("digest d0 (%18, zext(%17, 100)) assign %1 = 9w511", "");
    let digest = ir::DigestId(0);
    let config = crate::digest::DigestConfig {
        max_timeout_ns: 0,
        max_list_size: 2,
        ack_timeout_ns: 1_000_000,
    };
    switch.configure_digest(digest, config).expect("exists");
    for value in [1, 2, 3] {
        send(&mut switch, &[9, 0, value]);
    }
    let lists = switch.take_digests(Time::from(1_000_000_000_u64));
    let sizes: Vec<_> = lists
        .iter()
        .map(|l| (l.list_id, l.messages.len()))
        .collect();
    assert_eq!(sizes, [(1, 2), (2, 1)]);
    assert_eq!(lists[0].messages[0][0], ir::Bits::from_u64(16, 1));
    assert_eq!(lists[0].messages[0][1], ir::Bits::from_u64(100, 9));
    // Until it is acknowledged or the time is over, the same message is not sent again.
    send(&mut switch, &[9, 0, 1]);
    assert_eq!(switch.take_digests(Time::from(1_000_000_000_u64)), []);
    switch
        .acknowledge_digest(digest, 1)
        .expect("is outstanding");
    assert!(switch.acknowledge_digest(digest, 1).is_err());
    send(&mut switch, &[9, 0, 1]);
    assert_eq!(switch.take_digests(Time::from(1_000_000_000_u64)).len(), 1);
    let mut out = Vec::new();
    switch.receive(
        Time::from(3_000_000_000_u64),
        0,
        Packet::new(&[9, 0, 3]),
        &mut out,
    );
    assert_eq!(
        switch.take_digests(Time::from(3_000_000_000_u64)).len(),
        1,
        "after the timeout"
    );
}

/// A trace shows the first copies of a packet and counts the others, however they were made.
#[test]
fn a_trace_of_many_copies_can_be_read() {
    for (ingress, egress, replicas) in [
        ("resubmit", "", 0),
        ("assign %1 = 9w1", "recirculate", 0),
        ("assign %1 = 9w1", "clone e2e 32w5 assign %1 = 9w511", 0),
        ("assign %11 = 16w7", "", 300),
        ("assign %11 = 16w7", "recirculate", 3),
    ] {
        let mut switch = switch(ingress, egress);
        let ports: Vec<(u32, u16)> = (0..replicas).map(|i| (1, i)).collect();
        group(&mut switch, 7, &ports);
        session(&mut switch, 5, &[(2, 0)], 0);
        let (out, trace) = switch.trace(Time::ZERO, 3, Packet::new(&[1, 0, 0, 9]));
        let (text, json) = (trace.to_string(), trace.to_json());
        assert!(text.len() < 200_000, "{ingress} {egress}: {}", text.len());
        let shown = text.matches("copy: ").count();
        assert_eq!(shown, crate::trace::MAX_COPIES);
        let lines = text.lines().filter(|l| l.contains(" more cop"));
        let numbers = lines.map(|line| {
            let mut words = line.split_whitespace();
            let copies: usize = words.next().expect("a word").parse().expect("a number");
            let sent = words.nth(4).expect("a word").parse::<usize>();
            (copies, sent.expect("a number"))
        });
        let numbers: Vec<(usize, usize)> = numbers.collect();
        let (copies, sent) = numbers.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        assert!(copies > 0 && !numbers.is_empty());
        let sent = sent
            + text
                .lines()
                .filter(|l| l.trim_start().starts_with("sent "))
                .count();
        assert_eq!(sent, out.len(), "{text}");
        assert!(json.contains("\"left_out\""));
    }
}

#[test]
fn the_trace_tells_the_whole_story() {
    let mut switch = Bodies {
        ingress: "apply t2 (%18) @0:20 clone i2e 32w5 @0:21 if eq(%17, 8w1) @0:22 { assign %11 = 16w1 @0:23 }",
        egress: "if eq(%12, 16w2) @0:30 { assign %1 = 9w511 @0:31 }",
        ..Bodies::default()
    }
    .switch();
    group(&mut switch, 1, &[(1, 1), (2, 2)]);
    session(&mut switch, 5, &[(4, 0)], 0);
    let (out, trace) = switch.trace(Time::from(77_u64), 3, Packet::new(&[1, 0x12, 0x34, 9]));
    assert_eq!(
        ports_and_bytes(out),
        [(4, vec![1, 0x12, 0x34, 9]), (1, vec![1, 0x12, 0x34, 9])]
    );
    expect![[r#"
        received 4 bytes at port 3, 77 ps
        parser
          state start  [test.p4:1]
          extract hdr.tag (3 bytes) hdr.tag.kind=0x01 hdr.tag.value=0x1234  [test.p4:2]
          transition select(0x01) accept  [test.p4:1]
        ingress
          table constant (value=0x1234): hit [0x1234/16], forward(port=0x003)  [test.p4:20]
          standard_metadata.egress_spec = 0x003  [test.p4:10]
          clone to session 5  [test.p4:21]
          if true  [test.p4:22]
          standard_metadata.mcast_grp = 0x0001  [test.p4:23]
        copy: ingress_clone
          parser
            state start  [test.p4:1]
            extract hdr.tag (3 bytes) hdr.tag.kind=0x01 hdr.tag.value=0x1234  [test.p4:2]
            transition select(0x01) accept  [test.p4:1]
          enqueued for port 4, rid 0
          egress
            if false  [test.p4:30]
          deparser
            emit hdr.tag (3 bytes)  [test.p4:40]
            emit hdr.extra: invalid, left out  [test.p4:41]
            emit hdr.options: invalid, left out  [test.p4:42]
          sent 4 bytes at port 4
        copy: replica
          enqueued for port 1, rid 1
          egress
            if false  [test.p4:30]
          deparser
            emit hdr.tag (3 bytes)  [test.p4:40]
            emit hdr.extra: invalid, left out  [test.p4:41]
            emit hdr.options: invalid, left out  [test.p4:42]
          sent 4 bytes at port 1
        copy: replica
          enqueued for port 2, rid 2
          egress
            if true  [test.p4:30]
            standard_metadata.egress_spec = 0x1ff  [test.p4:31]
          dropped: egress_drop
    "#]]
    .assert_eq(&trace.to_string());
    let json = trace.to_json();
    let table = json.find(r#"{"event":"table""#).expect("is there");
    let end = table + json[table..].find("},{").expect("is there");
    expect![[r#"{"event":"table","at":"test.p4:20","table":"constant","keys":{"value":"0x1234"},"hit":true,"entry":{"value":"0x1234/16"},"action":"forward","args":{"port":"0x003"}}"#]].assert_eq(&json[table..=end]);
    assert_eq!(json.matches('{').count(), json.matches('}').count());
    // Nothing is recorded afterwards, and the usual executor is back.
    assert_eq!(send(&mut switch, &[0, 0, 0]).len(), 2);
}
