//! The executor and the functions that machine code calls, with functions of Rust in the place of machine code.
//!
//! They do to packets, arrivals, frames and shims what generated code may do, so that Miri sees both sides. Which of it a packet needs, its
//! first byte says; its second is the port. Whether generated code is right, the tests in `tests/` say.

use super::*;
use crate::calls;
use crate::calls::Replicas;
use crate::frame::drop_code;
use crate::module::empty_module;
use crate::preserving;
use engine::control::{MulticastGroup, Replica};
use engine::{Replication, Time};
use ir::text::{parse, preamble};
use ir::{BinaryOp, HashAlgorithm};

/// Bytes of a packet that the program parses.
const HEADER: usize = 3;

/// Words of the state that the functions write their results to.
const RESULTS: usize = 32;

/// Adds one to the third byte.
const EDIT: u8 = 0;
/// Puts `new!` in front.
const GROW: u8 = 1;
/// Drops the packet.
const DROP: u8 = 2;
/// Cuts it to five bytes.
const CUT: u8 = 3;
/// Does both.
const CUT_GROWN: u8 = 4;
/// Emits as many headers as the second byte says, beyond what there is room for.
const EMIT: u8 = 5;
/// Does what [`EDIT`] does, but in the other function.
const OTHER: u8 = 6;
/// Makes the replicas of group 1, of which the last is the packet itself.
const REPLICATE: u8 = 7;
/// Makes those of a group that there is not.
const NOWHERE: u8 = 8;
/// Stops after ingress with a resubmit.
const INGRESS: u8 = 9;
/// Stops after egress with a truncation and an emitted header.
const EGRESS: u8 = 10;
/// Writes to tables and cells, in place and by calls, and gives what they hold as the third byte.
const STATEFUL: u8 = 11;

fn program() -> Arc<Program> {
    let slots = [
        ("h.$valid", 1),
        ("h.kind", 8),
        ("h.value", 16),
        ("port", 9),
        ("wide", 100),
    ];
    let text = preamble("functions", slots)
        + r#"
        header h0 "h" valid %16 { %17 %18 }
        register r0 "narrow" id 1: 32 size 4
        register r1 "wide" id 2: 100 size 2
        counter c0 "packets" id 1 both size 4
        meter m0 "meter" id 1 packets size 2
        digest d0 "learn" id 1 (16)
        value_set v0 "kinds" id 1 (8) size 2
        action a0 "forward" id 1 (%19 "port" id 1) { assign %1 = %19 }
        table t0 "exact" id 1 {
          key "value" id 1: 16 exact
          action a0
          default a0 (9w1)
          entry (16w0x1234) a0 (9w7)
          size 0
        }
        table t1 "large" id 2 { key "value" id 1: 16 lpm action a0 default a0 (9w1) size 65536 }
        table t2 "packed" id 3 {
          key "kind" id 1: 8 ternary
          key "value" id 2: 16 exact
          action a0
          default a0 (9w1)
          entry (8w0 & 8w0xff, 16w0) priority 1 a0 (9w8)
          size 0
        }
        state s0 "start" { extract h0 goto accept }
        control verify_checksum { }
        control ingress { apply t0(%18) apply t1(%18) apply t2(%17, %18) }
        control egress { }
        control compute_checksum { }
        control deparser { emit h0 }
        "#;
    Arc::new(parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")))
}

fn executor(program: &Arc<Program>) -> JitExecutor {
    let mut functions = [None; EntryPoint::ALL.len()];
    for (entry_point, function) in [
        (EntryPoint::Ingress, ingress as *const u8),
        (EntryPoint::Parse, parse_only as *const u8),
        (EntryPoint::Egress, egress as *const u8),
        (EntryPoint::FastPath, fast_path as *const u8),
        (EntryPoint::Unspecialised, unspecialised as *const u8),
        (EntryPoint::Prefetch, prefetch as *const u8),
    ] {
        functions[entry_point as usize] = Some(function);
    }
    let code = NativeCode {
        module: empty_module().expect("there is code for this machine"),
        stats: CompileStats::default(),
        functions,
    };
    verify(program).expect("the program is valid");
    let mut executor = JitExecutor::new(program.clone(), Analysis::new(program), code)
        .expect("no function is missing");
    executor.set_large_table(0);
    assert!(!executor.notes().is_empty(), "bursts are prefetched for");
    executor
}

unsafe extern "C" fn fast_path(
    frame: *mut Frame,
    mut arrival: *mut Arrival,
    end: *mut Arrival,
) -> *mut Arrival {
    // SAFETY: the executor gives what `FastPathFn` says.
    unsafe {
        while arrival != end {
            (*frame).truncate = 0;
            (*frame).resubmit = 0;
            (*frame).emitted_len = 0;
            let (code, goes_on) = run(frame, arrival);
            (*arrival).code = code;
            if !goes_on {
                return arrival;
            }
            arrival = arrival.add(1);
        }
        end
    }
}

/// Returns the exit code of a packet, and whether the next packet can be run at once.
unsafe fn run(frame: *mut Frame, arrival: *mut Arrival) -> (u64, bool) {
    // SAFETY: the packet has its header and a payload; the room in front of it is its own.
    unsafe {
        let packet = (*arrival).packet;
        let port = u64::from(*packet.add(1)) << 8;
        (*frame).consumed = HEADER as u64;
        match *packet {
            EDIT => {
                *packet.add(2) += 1;
                (port | exit::SENT_IN_PLACE, true)
            }
            GROW => {
                grow(arrival);
                (port | exit::SENT_MOVED, true)
            }
            DROP => (exit::DROPPED + drop_code(DropReason::EgressDrop), true),
            CUT => {
                (*frame).truncate = 6;
                (port | exit::CUT_IN_PLACE, false)
            }
            CUT_GROWN => {
                grow(arrival);
                (*frame).truncate = 6;
                (port | exit::CUT_MOVED, false)
            }
            EMIT => {
                emit(frame, port >> 8);
                (port | exit::SENT, false)
            }
            OTHER => (exit::UNSPECIALISED, false),
            REPLICATE => {
                replicate(frame, arrival, 1);
                (exit::REPLICATED, false)
            }
            NOWHERE => {
                replicate(frame, arrival, 2);
                (*frame).replicas_dropped = 3;
                (exit::REPLICATED, false)
            }
            INGRESS => {
                (*frame).resubmit = 1;
                *(*frame).state = 42;
                (exit::AFTER_INGRESS, false)
            }
            EGRESS => {
                (*frame).truncate = 8;
                emit(frame, 1);
                (port | exit::AFTER_EGRESS, false)
            }
            STATEFUL => {
                *packet.add(2) = stateful(frame, arrival) as u8;
                (port | exit::SENT_IN_PLACE, true)
            }
            other => panic!("no packet begins with {other}"),
        }
    }
}

unsafe fn grow(arrival: *mut Arrival) {
    // SAFETY: a fresh packet has so much headroom.
    unsafe {
        b"new!".as_ptr().copy_to((*arrival).packet.sub(4), 4);
        (*arrival).headroom -= 4;
    }
}

/// Emits `headers` headers of 12 bits, `0xabc` each, and 4 bits more if they end within a byte.
unsafe fn emit(frame: *mut Frame, headers: u64) {
    // SAFETY: `reserve` has made room for what is written.
    unsafe {
        let mut end = (*frame).emitted;
        let mut bits = 0_u64;
        for _ in 0..headers {
            let begin = calls::reserve(frame, end, 3).sub(bits.div_ceil(8) as usize);
            calls::append_bits(begin, bits, &0xabc, 12);
            bits += 12;
            end = begin.add(bits.div_ceil(8) as usize);
        }
        (*frame).emitted_len = end.offset_from_unsigned((*frame).emitted) as u64;
    }
}

unsafe fn replicate(frame: *mut Frame, arrival: *mut Arrival, group: u64) {
    // SAFETY: headers are as long as the room that was asked for.
    unsafe {
        (*frame).set_packet(&*arrival);
        let Replicas { first, end } = calls::replicas(frame, group);
        let mut replica = first;
        while replica != end {
            let (port, next) = (u64::from((*replica).port), replica.add(1));
            let is_last = u64::from(next == end);
            if port % 2 == 0 {
                let headers = calls::replica_room(frame, arrival, port, 2, is_last);
                headers.write((*replica).rid as u8);
                headers.add(1).write(b'R');
            } else {
                emit(frame, 2);
                calls::replica_of_emitted(frame, arrival, port, is_last);
            }
            replica = next;
        }
    }
}

unsafe fn stateful(frame: *mut Frame, arrival: *mut Arrival) -> u64 {
    // SAFETY: a view says where its table or its cells are and how many.
    unsafe {
        (*frame).set_packet(&*arrival);
        let view = &*(*frame).views;
        assert_eq!(view.entry_count, 2, "the table is looked up in place");
        let records = std::slice::from_raw_parts(view.record_of_entry, view.entry_count as usize);
        assert!(records.iter().all(|&r| u64::from(r) < view.record_count));
        let [narrow, _, counter] = *(*frame).cells.cast::<[crate::views::CellsView; 3]>();
        assert_eq!([narrow.count, counter.count], [4, 4]);
        *narrow.first += 1;
        assert_eq!(
            calls::register_read_word(frame, 0, 4),
            0,
            "is beyond the end"
        );
        calls::register_write_word(frame, 0, 4, 1);
        *counter.first += 1;
        calls::count(frame, 0, 4);
        let found = calls::lookup_word(frame, 0, 0x1234);
        assert_eq!((found.action_and_hit, *found.args), (1 << 32, 7));
        *narrow.first
    }
}

unsafe extern "C" fn unspecialised(
    frame: *mut Frame,
    start: *mut Arrival,
    end: *mut Arrival,
) -> *mut Arrival {
    // SAFETY: the executor gives one arrival.
    unsafe {
        assert_eq!(end.offset_from_unsigned(start), 1);
        *(*frame).packet.add(2) += 1;
        (*start).code = u64::from(*(*frame).packet.add(1)) << 8 | exit::SENT_IN_PLACE;
    }
    end
}

unsafe extern "C" fn prefetch(frame: *mut Frame, mut arrival: *mut Arrival, end: *mut Arrival) {
    // SAFETY: there is a list for the table.
    unsafe {
        while arrival != end {
            let list = (*frame).notes;
            if (*list).next != (*list).end {
                (*list).next.write(u64::from(*(*arrival).packet.add(2)));
                (*list).next = (*list).next.add(1);
            }
            arrival = arrival.add(1);
        }
    }
}

unsafe extern "C" fn parse_only(frame: *mut Frame) {
    // SAFETY: the packet has its header.
    unsafe {
        let state = (*frame).state;
        calls::read_bits((*frame).packet, 4, 12, state, 2);
        (*frame).consumed = HEADER as u64;
    }
}

unsafe extern "C" fn egress(frame: *mut Frame) {
    // SAFETY: the frame is that of a run.
    unsafe {
        emit(frame, *(*frame).state);
        (*frame).drop = drop_code(DropReason::EgressDrop);
        (*frame).clone = 1;
        (*frame).clone_session = 9;
        (*frame).recirculate = 1;
    }
}

/// Calls each shim that makes no replicas and reserves no room, and writes the results to the state array.
unsafe extern "C" fn ingress(frame: *mut Frame) {
    // SAFETY: ids, indices and widths are those of the program, and results are within the state.
    unsafe {
        let (state, packet) = ((*frame).state, (*frame).packet);
        let result = |at: usize| state.add(at);
        let wide = [0x1111_2222_3333_4444, 0xf_ffff_ffff];
        calls::register_write(frame, 1, 1, wide.as_ptr(), 2);
        result(0).copy_from(calls::register_cell(frame, 1, 1), 2);
        calls::register_write_word(frame, 0, 3, 77);
        *result(2) = calls::register_read_word(frame, 0, 3);
        calls::count(frame, 0, 2);
        *result(3) = calls::meter_execute(frame, 0, 0);
        *result(4) = calls::random(frame, 5, 5);
        calls::digest(frame, 0, &0xbeef, 1);
        *result(5) = calls::value_set_contains(frame, 0, &3, 1);
        (*frame).consumed = HEADER as u64;
        let xor = calls::algorithm_code(HashAlgorithm::Xor16);
        calls::hash_bytes(frame, xor, packet, 2, 1, result(6), 1);
        calls::hash_bytes(frame, xor, packet, 2, 0, result(7), 1);
        let mul = calls::operator_code(BinaryOp::Mul);
        calls::binary(mul, 100, 100, wide.as_ptr(), [3, 0].as_ptr(), result(8));
        calls::read_bits(packet, 4, 12, result(10), 2);
        let found = calls::lookup(frame, 0, &0x1234, 1);
        (*result(12), *result(13)) = (*found.args, found.action_and_hit);
        find(frame, 0x1234);
        (*result(14), *result(15)) = (*(*frame).found_args, (*frame).found);
        find(frame, 0x1235);
        (*result(16), *result(17)) = (*(*frame).found_args, (*frame).found);
        let found = calls::lookup_packed(frame, 2, &0, 1);
        (*result(18), *result(19)) = (*found.args, found.action_and_hit);
        *result(20) = calls::direct_meter_read(frame, 0);
        (*frame).truncate = 8;
    }
}

/// Looks up a key by both functions that preserve registers. Only machine code and Miri can call them.
unsafe fn find(frame: *mut Frame, key: u64) {
    #[cfg(miri)]
    // SAFETY: the caller gives the frame of the running function.
    unsafe {
        preserving::find(frame, (*frame).packet, &raw const key, 1, 0);
        let found = ((*frame).found_args, (*frame).found);
        preserving::find_word(frame, (*frame).packet, key, 0);
        assert_eq!(found, ((*frame).found_args, (*frame).found));
    }
    #[cfg(not(miri))]
    // SAFETY: as above.
    unsafe {
        let _ = preserving::find as *const u8;
        let found = calls::lookup_word(frame, 0, key);
        ((*frame).found_args, (*frame).found) = (found.args, found.action_and_hit);
    }
}

/// A switch without the rest of it.
struct Bench {
    executor: JitExecutor,
    runtime: Runtime,
    replication: Replication,
    state: Vec<u64>,
    emitted: Vec<u8>,
    spare: Spare,
    out: Vec<Output>,
    drops: [u64; DropReason::ALL.len()],
}

impl Bench {
    fn new() -> Bench {
        let program = program();
        let mut replication = Replication::default();
        let replicas = [(2, 50), (3, 51), (4, 52), (6, 53)];
        let group = MulticastGroup {
            group_id: 1,
            replicas: replicas.map(|(port, rid)| Replica { port, rid }).into(),
        };
        replication.put_group(1, Some(group));
        let executor = executor(&program);
        Bench {
            state: vec![0; executor.state_limbs.max(RESULTS)],
            executor,
            runtime: Runtime::new(program, 1),
            replication,
            emitted: Vec::new(),
            spare: Spare::default(),
            out: Vec::new(),
            drops: [0; DropReason::ALL.len()],
        }
    }

    /// Runs packets on the fast path, from the one at position `first` on.
    fn run(&mut self, packets: &mut Vec<(u32, Packet)>, first: usize) -> FastPath {
        self.executor.fast_path(&mut FastPathContext {
            now_ps: Time::ZERO,
            packets,
            first,
            out: &mut self.out,
            spare: &mut self.spare,
            replication: &self.replication,
            drops: &mut self.drops,
            prefetched: 0,
            steady: true,
            state: &mut self.state,
            emitted: &mut self.emitted,
            runtime: &mut self.runtime,
        })
    }

    /// Runs a part of the pipeline on a packet; returns the number of bytes consumed and the requests.
    fn part(
        &mut self,
        part: fn(&JitExecutor, &mut PacketContext<'_>),
        packet: &[u8],
    ) -> (usize, Intents) {
        let mut cx = PacketContext {
            now_ps: Time::ZERO,
            state: &mut self.state,
            packet,
            packet_len: packet.len(),
            consumed: 0,
            emitted: &mut self.emitted,
            runtime: &mut self.runtime,
            intents: Intents::default(),
            trace: None,
        };
        part(&self.executor, &mut cx);
        (cx.consumed, cx.intents)
    }

    /// Removes and returns the packets that left: the output port, the number of the arrived packet, and the bytes.
    fn sent(&mut self) -> Vec<(u32, u32, Vec<u8>)> {
        let sent = |o: Output| (o.port, o.arrival, o.packet.bytes().to_vec());
        self.out.drain(..).map(sent).collect()
    }
}

/// Returns a packet of a kind for a port with `payload` bytes of payload; long ones have memory of their own.
fn packet(kind: u8, port: u8, payload: usize) -> (u32, Packet) {
    let mut bytes = vec![kind, port, 10];
    bytes.extend((0..payload).map(|i| i as u8));
    (0, Packet::new(&bytes))
}

/// Returns `front` followed by the bytes of a packet from position `behind` on.
fn rest(packet: &(u32, Packet), front: &[u8], behind: usize) -> Vec<u8> {
    [front, &packet.1.stored()[behind..]].concat()
}

#[test]
fn packets_are_run_to_the_end_of_a_burst() {
    for payload in [4, 300] {
        let mut bench = Bench::new();
        let kinds = [EDIT, GROW, DROP, CUT, CUT_GROWN, EMIT, OTHER];
        let mut expected = Vec::new();
        let mut packets = Vec::new();
        // More than a part of a burst, and what is dropped in the first part is memory for the second.
        for i in 0..2 * PART as u32 + 3 {
            let (kind, port) = (kinds[i as usize % kinds.len()], i as u8);
            let p = packet(kind, port, payload);
            let grown = [b"new!".as_slice(), &[kind, port, 10]].concat();
            match kind {
                EDIT | OTHER => expected.push((i, rest(&p, &[kind, port, 11], HEADER))),
                GROW => expected.push((i, rest(&p, &grown, HEADER))),
                CUT => expected.push((i, p.1.stored()[..5].to_vec())),
                CUT_GROWN => expected.push((i, grown[..5].to_vec())),
                EMIT => expected.push((i, rest(&p, &headers(i), HEADER))),
                _ => {}
            }
            packets.push(p);
        }
        assert_eq!(bench.run(&mut packets, 0), FastPath::Done);
        let expected: Vec<_> = (expected.into_iter()).map(|(i, b)| (i, i, b)).collect();
        assert_eq!(bench.sent(), expected);
        assert_eq!(bench.drops[DropReason::EgressDrop as usize], 10);
        assert!(packets.is_empty());
    }
}

/// Returns the bytes that [`emit`] writes for `count` headers.
fn headers(count: u32) -> Vec<u8> {
    let mut bytes = [0xab, 0xca, 0xbc].repeat(count as usize / 2);
    if count % 2 == 1 {
        bytes.extend([0xab, 0xc0]);
    }
    bytes
}

#[test]
fn replicas_have_memory_of_their_own_and_the_last_is_the_packet() {
    for payload in [4, 300] {
        let mut bench = Bench::new();
        let kinds = [DROP, EDIT, REPLICATE, NOWHERE, REPLICATE, GROW];
        let mut packets: Vec<_> = kinds.iter().map(|&k| packet(k, 9, payload)).collect();
        let [edited, grown] = [(1, EDIT, 11, 0), (5, GROW, 10, 4)].map(|(i, kind, value, new)| {
            let front = [&b"new!"[..new], &[kind, 9, value]].concat();
            (9, i, rest(&packets[0], &front, HEADER))
        });
        let copies = |i: u32| {
            let fronts = [(2, vec![50, b'R']), (3, headers(2)), (4, vec![52, b'R'])];
            let last = (6, vec![53, b'R']);
            let fronts = fronts.into_iter().chain([last]);
            fronts.map(move |(port, front)| (port, i, front))
        };
        let mut expected = vec![edited];
        for i in [2, 4] {
            expected.extend(copies(i).map(|(p, i, f)| (p, i, rest(&packets[0], &f, HEADER))));
        }
        expected.push(grown);
        assert_eq!(bench.run(&mut packets, 0), FastPath::Done);
        assert_eq!(bench.sent(), expected);
        assert_eq!(bench.drops[DropReason::EgressDrop as usize], 1 + 3);
    }
}

#[test]
fn a_burst_goes_on_behind_a_packet_that_stopped() {
    let mut bench = Bench::new();
    let kinds = [EDIT, INGRESS, GROW, DROP, EGRESS, CUT, INGRESS];
    let mut packets: Vec<_> = kinds.iter().map(|&k| packet(k, 9, 20)).collect();
    let arrived: Vec<Vec<u8>> = (packets.iter()).map(|p| p.1.bytes().to_vec()).collect();
    let mut next = 0;
    for at in [1, 4, 6] {
        let FastPath::Stopped(stop) = bench.run(&mut packets, next) else {
            panic!("packet {at} stops");
        };
        assert_eq!((stop.packet, stop.consumed), (at, HEADER));
        for (packet, bytes) in packets[at..].iter().zip(&arrived[at..]) {
            assert_eq!(packet.1.stored(), bytes);
        }
        if at == 4 {
            assert_eq!(stop.exit, Exit::AfterEgress(9));
            assert_eq!(stop.intents.truncate, Some(7));
            assert_eq!(bench.emitted, headers(1));
        } else {
            assert_eq!(stop.exit, Exit::AfterIngress);
            assert_eq!((stop.intents.resubmit, bench.state[0]), (Some(None), 42));
        }
        drop(std::mem::take(&mut packets[at].1));
        next = at + 1;
    }
    assert_eq!(bench.run(&mut packets, next), FastPath::Done);
    let sent: Vec<u32> = bench.sent().into_iter().map(|(_, i, _)| i).collect();
    assert_eq!(sent, [0, 2, 5]);
}

#[test]
fn cells_in_place_and_by_calls_are_the_same() {
    let mut bench = Bench::new();
    let mut packets = vec![packet(STATEFUL, 1, 4); PART + 5];
    assert_eq!(bench.run(&mut packets, 0), FastPath::Done);
    let values: Vec<u8> = bench.sent().iter().map(|(_, _, bytes)| bytes[2]).collect();
    assert_eq!(values, (1..=PART as u8 + 5).collect::<Vec<_>>());
    let cell = bench.runtime.register_cell(ir::RegisterId(0), 0);
    assert_eq!(cell, Some(ir::Bits::from_u64(32, PART as u64 + 5)));
}

#[test]
fn each_call_does_what_it_says() {
    let mut bench = Bench::new();
    let packet = [0x12, 0x34, 0x56, 0xab, 0xcd];
    let (consumed, intents) = bench.part(|e, cx| e.run(ir::Pipeline::INGRESS, cx), &packet);
    assert_eq!((consumed, intents.truncate), (HEADER, Some(7)));
    let wide = [0x1111_2222_3333_4444_u64, 0xf_ffff_ffff];
    assert_eq!(bench.state[..2], wide);
    assert_eq!(bench.state[2..6], [77, 0, 5, 0]);
    assert_eq!(bench.state[6..8], [0x1234 ^ 0xabcd, 0x1234]);
    assert_eq!(bench.state[8..10], [3 * wide[0], 0xf_ffff_fffd]);
    assert_eq!(bench.state[10..12], [0x234, 0]);
    assert_eq!(bench.state[12..18], [7, 1 << 32, 7, 1 << 32, 1, 0]);
    assert_eq!(bench.state[18..21], [8, 1 << 32, 0]);
    assert!(!bench.runtime.digests().is_empty());
    let counted = bench.runtime.counter_limbs_mut(ir::CounterId(0)).0;
    assert_eq!(counted, [0, 0, 0, 0, 1, 5, 0, 0]);
}

#[test]
fn the_other_parts_give_what_was_consumed_emitted_and_requested() {
    let mut bench = Bench::new();
    let packet = [0x12, 0x34, 0x56, 0xab, 0xcd];
    assert_eq!(bench.part(JitExecutor::parse, &packet).0, HEADER);
    assert_eq!(bench.state[..2], [0x234, 0]);
    bench.state[0] = 101;
    let (_, intents) = bench.part(|e, cx| e.run(ir::Pipeline::EGRESS, cx), &packet);
    assert_eq!(bench.emitted, headers(101));
    assert_eq!(intents.drop, Some(DropReason::EgressDrop));
    assert_eq!(intents.clone, Some((9, None)));
    assert_eq!(intents.recirculate, Some(None));
}
