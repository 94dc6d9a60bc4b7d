//! Live tests: real namespaces, real packet sockets, the kernel's own TCP. They need root; without it they are skipped with a message.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for what runs in real time, or measures"
)]

use net::clock::wall::FrameIo;
use ports::{
    Namespace, PacketIo, PacketSocket, TransmitKind, VethOptions, clean, disable_offloads,
    send_load,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Returns true if live tests can run on this machine; otherwise prints the reason.
fn permitted() -> bool {
    let missing: Vec<_> = ports::probe()
        .into_iter()
        .filter(|f| !f.available)
        .filter(|f| {
            f.name.starts_with("CAP_") || ["AF_PACKET", "/run/netns", "ip"].contains(&f.name)
        })
        .map(|f| format!("{}: {}", f.name, f.detail))
        .collect();
    if !missing.is_empty() {
        eprintln!("skipped: {}", missing.join("; "));
    }
    missing.is_empty()
}

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

/// Makes two hosts, 10.0.0.1 and 10.0.0.2, each with a veth pair whose outer end is in the process's own namespace.
fn two_hosts(label: &str) -> ([Namespace; 2], [String; 2]) {
    let mut outer = Vec::new();
    let hosts = [0, 1].map(|i| {
        let mut host = Namespace::new(&format!("{label}{i}")).expect("namespace");
        let options = VethOptions {
            mac: Some(MACS[i]),
            ..VethOptions::default()
        };
        outer.push(host.add_veth("eth0", &options).expect("veth"));
        host
    });
    for (i, host) in hosts.iter().enumerate() {
        give_address(host, "eth0", i);
    }
    (hosts, outer.try_into().expect("two"))
}

fn give_address(host: &Namespace, interface: &str, i: usize) {
    let other = 1 - i;
    host.add_address(interface, address(i as u8 + 1).into(), 24)
        .expect("address");
    host.add_neighbour(interface, address(other as u8 + 1).into(), MACS[other])
        .expect("neighbour");
}

/// Forwards frames between two interfaces until `stop` is set, and passes every frame to `see`.
fn forward(io: &mut PacketIo, stop: &AtomicBool, mut see: impl FnMut(usize, &[u8])) {
    let mut frames: Vec<(usize, Vec<u8>)> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        io.wait(Duration::from_millis(100), &mut |interface, frame| {
            see(interface, frame);
            frames.push((1 - interface, frame.to_vec()));
        });
        for (interface, frame) in frames.drain(..) {
            io.send(interface, &frame);
        }
    }
    io.flush();
}

/// Adds up the 16-bit words, leaving the carries in the upper half of the sum.
fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |&b| u32::from(b)))
        .sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns true if the checksums of an IPv4 packet and of its TCP segment or UDP datagram are correct.
fn checksums_hold(packet: &[u8]) -> bool {
    let header = usize::from(packet[0] & 15) * 4;
    let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let payload = &packet[header..length];
    let pseudo = sum(&packet[12..20]) + u32::from(packet[9]) + payload.len() as u32;
    folded(sum(&packet[..header])) == 0xffff && folded(sum(payload) + pseudo) == 0xffff
}

/// Sends `bytes` bytes over TCP from the first host to the second, and checks that they arrive unchanged.
fn transfer(hosts: &[Namespace; 2], bytes: usize) {
    let listener = hosts[1]
        .within(|| TcpListener::bind((address(2), 5001)))
        .expect("in namespace")
        .expect("listening");
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("received");
        received
    });
    let mut stream = hosts[0]
        .within(|| TcpStream::connect((address(2), 5001)))
        .expect("in namespace")
        .expect("connected");
    let data: Vec<u8> = (0..bytes).map(|i| (i / 7) as u8).collect();
    stream.write_all(&data).expect("sent");
    drop(stream);
    assert!(receiver.join().expect("receiver") == data, "bytes differ");
}

/// Returns a counter from /proc/net/snmp in a namespace.
fn snmp(host: &Namespace, protocol: &str, counter: &str) -> u64 {
    let text = host
        .within(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))
        .expect("in namespace")
        .expect("snmp");
    let mut lines = text
        .lines()
        .filter_map(|l| l.strip_prefix(protocol)?.strip_prefix(": "))
        .map(|l| l.split_whitespace());
    let mut names = lines.next().expect("names");
    let mut values = lines.next().expect("values");
    let at = names.position(|n| n == counter).expect("counter");
    values.nth(at).expect("value").parse().expect("number")
}

#[test]
fn tcp_crosses_two_ports_with_good_checksums_and_ordinary_lengths() {
    if !permitted() {
        return;
    }
    let (hosts, outer) = two_hosts("tcp");
    let mut io = PacketIo::open(&outer).expect("ports");
    let wake = io.waker().expect("a waker");
    let stop = AtomicBool::new(false);
    let (mut segments, mut bad, mut longest) = (0u64, 0u64, 0);
    std::thread::scope(|scope| {
        let io = &mut io;
        let stop = &stop;
        let forwarder = scope.spawn(move || {
            forward(io, stop, |_, frame| {
                longest = longest.max(frame.len());
                if frame[12..14] == [8, 0] {
                    segments += 1;
                    bad += u64::from(!checksums_hold(&frame[14..]));
                }
            });
            (segments, bad, longest)
        });
        transfer(&hosts, 8 << 20);
        stop.store(true, Ordering::Relaxed);
        wake();
        (segments, bad, longest) = forwarder.join().expect("forwarder");
    });
    assert!(segments > 5000, "{segments} segments");
    assert_eq!(bad, 0, "bad checksums of {segments}");
    assert_eq!(longest, 1514);
    for host in &hosts {
        assert_eq!(snmp(host, "Tcp", "InCsumErrors"), 0);
    }
    let counters = [io.counters(0), io.counters(1)];
    for (near, far) in [(0, 1), (1, 0)] {
        assert_eq!(counters[near].rx_oversized, 0);
        assert_eq!(counters[near].rx_checksums_completed, 0);
        assert_eq!(counters[near].rx_errors, 0);
        assert_eq!(counters[near].tx_drops, 0);
        assert_eq!(counters[near].rx_frames, counters[far].tx_frames);
        assert_eq!(counters[near].rx_bytes, counters[far].tx_bytes);
    }
}

#[test]
fn a_round_trip_takes_well_under_a_millisecond() {
    if !permitted() {
        return;
    }
    let (hosts, outer) = two_hosts("rtt");
    let mut io = PacketIo::open(&outer).expect("ports");
    let wake = io.waker().expect("a waker");
    let stop = AtomicBool::new(false);
    let bind = |i: usize, port| {
        hosts[i]
            .within(|| UdpSocket::bind((address(i as u8 + 1), port)))
            .expect("in namespace")
            .expect("socket")
    };
    let (client, server) = (bind(0, 4000), bind(1, 7));
    client
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("timeout");
    let mut best = Duration::MAX;
    std::thread::scope(|scope| {
        scope.spawn(|| forward(&mut io, &stop, |_, _| {}));
        scope.spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((length, from)) = server.recv_from(&mut buffer) {
                server.send_to(&buffer[..length], from).expect("echo");
                if length == 0 {
                    break;
                }
            }
        });
        for i in 0..=50u8 {
            // The last datagram is empty and ends the server.
            let data = if i == 50 { vec![] } else { vec![i; 32] };
            let start = Instant::now();
            client.send_to(&data, (address(2), 7)).expect("sent");
            let mut buffer = [0; 64];
            let length = client.recv(&mut buffer).expect("echo came back");
            best = best.min(start.elapsed());
            assert_eq!(buffer[..length], data);
        }
        stop.store(true, Ordering::Relaxed);
        wake();
    });
    assert!(best < Duration::from_millis(1), "{best:?}");
}

#[test]
fn the_kernel_answers_a_ping_that_a_port_sends() {
    if !permitted() {
        return;
    }
    let (_hosts, outer) = two_hosts("ping");
    let mut socket = PacketSocket::open(&outer[0]).expect("port");
    let mut request = vec![];
    request.extend(MACS[0]);
    request.extend(MACS[1]);
    request.extend([8, 0]);
    request.extend([
        0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1,
    ]);
    request.extend([8, 0, 0, 0, 0x12, 0x34, 0, 1]);
    let ip_checksum = !folded(sum(&request[14..34]));
    request[24..26].copy_from_slice(&ip_checksum.to_be_bytes());
    let icmp_checksum = !folded(sum(&request[34..]));
    request[36..38].copy_from_slice(&icmp_checksum.to_be_bytes());
    socket.send(&request);
    socket.flush();

    let mut reply = None;
    let deadline = Instant::now() + Duration::from_secs(5);
    while reply.is_none() && Instant::now() < deadline {
        socket.receive(64, &mut |frame| reply = Some(frame.to_vec()));
        std::thread::sleep(Duration::from_millis(1));
    }
    let reply = reply.expect("a reply, and not our own frame");
    assert_eq!(reply[..6], MACS[1]);
    assert_eq!(reply[6..12], MACS[0]);
    assert_eq!(reply[34..36], [0, 0], "echo reply");
    assert_eq!(reply[38..42], request[38..42]);
    assert_eq!(folded(sum(&reply[34..42])), 0xffff);
}

#[test]
fn vlan_tags_survive() {
    if !permitted() {
        return;
    }
    let (hosts, outer) = two_hosts("vlan");
    let open_inside = |host: &Namespace| {
        host.within(|| PacketSocket::open("eth0"))
            .expect("in namespace")
            .expect("port")
    };
    let (mut sender, mut receiver) = (open_inside(&hosts[0]), open_inside(&hosts[1]));
    // One tag with a priority, a tag of VLAN 0, two tags, a tag of a service provider, none.
    let types: [&[u8]; 5] = [
        &[0x81, 0x00, 0xa0, 0x64, 0x12, 0x34],
        &[0x81, 0x00, 0xe0, 0x00, 0x12, 0x34],
        &[0x81, 0x00, 0x00, 0x0a, 0x81, 0x00, 0x00, 0x0b, 0x12, 0x34],
        &[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x08, 0x12, 0x34],
        &[0x12, 0x34],
    ];
    let frames = types.map(|middle| {
        let mut frame = [MACS[1], MACS[0]].concat();
        frame.extend_from_slice(middle);
        frame.extend(0..100);
        frame
    });
    let mut io = PacketIo::open(&outer).expect("ports");
    assert!(io.sends_by_xdp(1), "tags are no matter of how frames leave");
    for frame in &frames {
        sender.send(frame);
    }
    sender.flush();
    let (mut forwarded, mut received) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + Duration::from_secs(5);
    while received.len() < frames.len() && Instant::now() < deadline {
        let from = forwarded.len();
        io.wait(Duration::from_millis(10), &mut |interface, frame| {
            assert_eq!(interface, 0);
            forwarded.push(frame.to_vec());
        });
        for frame in &forwarded[from..] {
            io.send(1, frame);
        }
        io.flush();
        receiver.receive(64, &mut |frame| received.push(frame.to_vec()));
    }
    assert_eq!(forwarded, frames);
    assert_eq!(received, frames);
}

#[test]
fn namespaces_can_be_joined_directly() {
    if !permitted() {
        return;
    }
    let a = Namespace::new("a").expect("namespace");
    let b = Namespace::new("b").expect("namespace");
    let options = VethOptions::default();
    a.connect("eth0", &options, &b, "eth7", &options)
        .expect("veth");
    let v6: [IpAddr; 2] = ["fd00::1", "fd00::2"].map(|a| a.parse().expect("address"));
    a.add_address("eth0", v6[0], 64).expect("address");
    b.add_address("eth7", v6[1], 64).expect("address");
    let far: IpAddr = "10.9.0.1".parse().expect("address");
    b.add_address("lo", far, 32).expect("address");
    a.add_address("eth0", address(1).into(), 24)
        .expect("address");
    b.add_address("eth7", address(2).into(), 24)
        .expect("address");
    a.add_route(far, 32, Some(address(2).into()), "eth0")
        .expect("route");
    for to in [v6[1], far] {
        let listener = b
            .within(|| TcpListener::bind((to, 5001)))
            .expect("in namespace")
            .expect("listening");
        let stream = a
            .within(|| TcpStream::connect((to, 5001)))
            .expect("in namespace")
            .expect("connected");
        drop((stream, listener));
    }
    a.set_link("eth0", false).expect("down");
    let refused = a
        .within(|| TcpStream::connect((far, 5001)))
        .expect("in namespace");
    assert!(refused.is_err(), "no route over a link that is down");
}

#[test]
fn a_port_that_goes_down_counts_and_comes_back() {
    if !permitted() {
        return;
    }
    let (hosts, outer) = two_hosts("down");
    let mut io = PacketIo::open(&outer).expect("ports");
    hosts[0].set_link("eth0", false).expect("down");
    io.send(0, &[0xff; 60]);
    io.wait(Duration::ZERO, &mut |_, _| {});
    assert_eq!(io.counters(0).tx_frames + io.counters(0).tx_drops, 1);
    hosts[0].set_link("eth0", true).expect("up");
    let before = io.counters(0).tx_frames;
    io.send(0, &[0xff; 60]);
    io.flush();
    assert_eq!(io.counters(0).tx_frames, before + 1);
    // A frame longer than any interface takes is refused, alone.
    io.send(0, &vec![0xff; 20_000]);
    io.send(0, &[0xff; 60]);
    io.flush();
    assert_eq!(io.counters(0).tx_frames, before + 2);
}

#[test]
fn unfinished_checksums_of_other_interfaces_are_finished() {
    if !permitted() {
        return;
    }
    // A veth pair as anybody would make it, with all offloads on.
    let a = Namespace::new("raw-a").expect("namespace");
    let b = Namespace::new("raw-b").expect("namespace");
    let ip = |arguments: &[&str]| {
        let output = a.run(&[&["ip"], arguments].concat()).expect("ip");
        assert!(output.status.success(), "ip {arguments:?}: {output:?}");
    };
    let peer = ["peer", "name", "p1", "netns", b.name()];
    ip(&[&["link", "add", "p0", "type", "veth"], &peer[..]].concat());
    ip(&["link", "set", "p0", "up"]);
    b.set_link("p1", true).expect("up");
    a.add_address("p0", address(1).into(), 24).expect("address");
    a.add_neighbour("p0", address(2).into(), MACS[1])
        .expect("neighbour");
    let client = a
        .within(|| UdpSocket::bind((address(1), 4000)))
        .expect("in namespace")
        .expect("socket");
    let mut port = b
        .within(|| PacketSocket::open("p1"))
        .expect("in namespace")
        .expect("port");
    let mut one_frame = |data: &[u8]| {
        client.send_to(data, (address(2), 7)).expect("sent");
        let mut got = None;
        let deadline = Instant::now() + Duration::from_secs(5);
        while got.is_none() && Instant::now() < deadline {
            port.receive(64, &mut |frame| got = Some(frame.to_vec()));
        }
        let frame = got.expect("a frame");
        assert!(checksums_hold(&frame[14..]), "{frame:?}");
        port.counters().rx_checksums_completed
    };
    assert_eq!(one_frame(b"left to hardware"), 1);
    assert_eq!(one_frame(b"odd lengths too"), 2);
    a.within(|| disable_offloads("p0"))
        .expect("in namespace")
        .expect("off");
    assert_eq!(one_frame(b"finished by the sender"), 2);
}

/// Both ways in which frames leave.
const KINDS: [TransmitKind; 2] = [TransmitKind::AfPacket, TransmitKind::AfXdp];

fn inside(host: &Namespace, kind: TransmitKind) -> PacketSocket {
    host.within(|| PacketSocket::open_with("eth0", kind))
        .expect("in namespace")
        .expect("port")
}

/// Returns the frames that arrive within five seconds, at most `count`.
fn arriving(socket: &mut PacketSocket, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(5);
    while frames.len() < count && Instant::now() < deadline {
        socket.receive(64, &mut |frame| frames.push(frame.to_vec()));
    }
    frames
}

/// A pair of interfaces of which one end is down drops every frame of the other end.
#[test]
fn frames_that_an_interface_drops_are_no_sent_bytes() {
    if !permitted() {
        return;
    }
    for batch in [1, 2, 5, 40] {
        let (hosts, outer) = two_hosts("drop");
        let mut sender = PacketSocket::open_with(&outer[0], TransmitKind::AfXdp).expect("port");
        let mut receiver = inside(&hosts[0], TransmitKind::AfPacket);
        let frame = [&MACS[0][..], &MACS[1], &[0x12, 0x34], &[0; 86]].concat();
        let send = |sender: &mut PacketSocket| {
            for _ in 0..batch {
                sender.send(&frame);
            }
            sender.flush();
        };
        send(&mut sender);
        assert_eq!(arriving(&mut receiver, batch).len(), batch);
        hosts[0].set_link("eth0", false).expect("down");
        send(&mut sender);
        let counters = sender.counters();
        let counted = (counters.tx_frames, counters.tx_bytes, counters.tx_drops);
        let batch = batch as u64;
        assert_eq!(
            counted,
            (batch, 100 * batch, batch),
            "(frames, bytes, drops)"
        );
    }
}

#[test]
fn both_ways_of_sending_carry_every_length_in_order() {
    if !permitted() {
        return;
    }
    for kind in KINDS {
        let (hosts, outer) = two_hosts("len");
        let mut sender = PacketSocket::open_with(&outer[0], kind).expect("port");
        assert_eq!(sender.sends_by_xdp(), kind == TransmitKind::AfXdp);
        hosts[0].set_mtu("eth0", 9000).expect("mtu");
        let mut receiver = inside(&hosts[0], kind);
        // Shorter and longer than a slot of the ring, than what XDP takes, and than most interfaces take.
        let lengths = [60, 14, 1514, 1652, 1653, 2048, 2049, 9014, 61, 4096, 1500];
        let frames: Vec<Vec<u8>> = (0..lengths.len() * 40)
            .map(|i| {
                let mut frame = [MACS[0], MACS[1]].concat();
                frame.extend([0x12, 0x34]);
                let rest = lengths[i % lengths.len()] - frame.len();
                frame.extend((0..rest).map(|j| (i + j) as u8));
                frame
            })
            .collect();
        let mut received = Vec::new();
        for batch in frames.chunks(lengths.len()) {
            for frame in batch {
                sender.send(frame);
            }
            sender.flush();
            received.extend(arriving(&mut receiver, batch.len()));
        }
        assert!(received == frames, "{kind:?}: frames differ");
        let (sent, got) = (sender.counters(), receiver.counters());
        assert_eq!(sent.tx_drops, 0);
        assert_eq!(
            (sent.tx_frames, sent.tx_bytes),
            (got.rx_frames, got.rx_bytes)
        );
        // A frame that the interface would refuse is refused, alone, and nothing is too short to be counted.
        for bad in [vec![0; 9019], vec![], vec![0; 13]] {
            sender.send(&bad);
        }
        sender.send(&frames[0]);
        sender.flush();
        assert_eq!(arriving(&mut receiver, 1), [frames[0].clone()]);
        assert_eq!(sender.counters().tx_drops, 3);
    }
}

#[test]
fn a_ring_that_nobody_reads_overruns_and_goes_on() {
    if !permitted() {
        return;
    }
    let (hosts, outer) = two_hosts("over");
    let mut receiver = PacketSocket::open(&outer[0]).expect("port");
    let frame = [&MACS[1][..], &MACS[0][..], &[0x12, 0x34], &[7; 46]].concat();
    let mut sender = inside(&hosts[0], TransmitKind::Auto);
    for _ in 0..300 {
        for _ in 0..32 {
            sender.send(&frame);
        }
        sender.flush();
    }
    let sent = sender.counters().tx_frames;
    assert!(sent > 9000, "{sent}");
    let mut received = 0u64;
    while receiver.receive(64, &mut |_| received += 1) > 0 {}
    let counters = receiver.counters();
    assert_eq!(counters.rx_frames, received);
    assert!(counters.rx_kernel_drops > 0);
    assert_eq!(received + counters.rx_kernel_drops, sent);
    // It is not stuck.
    sender.send(&frame);
    sender.flush();
    assert_eq!(arriving(&mut receiver, 1), [frame]);
}

#[test]
fn an_interface_that_goes_down_or_away_and_returns() {
    if !permitted() {
        return;
    }
    for kind in KINDS {
        let mut host = Namespace::new("again").expect("namespace");
        let options = VethOptions::default();
        let outer = host.add_veth("eth0", &options).expect("veth");
        let mut io = PacketIo::new().expect("io");
        io.add(3, PacketSocket::open_with(&outer, kind).expect("port"));
        let wait_for = |io: &mut PacketIo, up: bool| {
            let mut changes = Vec::new();
            let deadline = Instant::now() + Duration::from_secs(5);
            while changes.is_empty() && Instant::now() < deadline {
                io.wait(Duration::from_millis(100), &mut |_, _| {});
                io.take_changes(&mut |interface, up| changes.push((interface, up)));
            }
            assert_eq!(changes, [(3, up)], "{kind:?}");
        };
        wait_for(&mut io, true);
        let frame = [0xff; 60];
        let arrives = |io: &mut PacketIo, host: &Namespace| {
            let mut receiver = inside(host, TransmitKind::AfPacket);
            io.send(3, &frame);
            io.flush();
            assert_eq!(arriving(&mut receiver, 1), [frame.to_vec()], "{kind:?}");
        };
        arrives(&mut io, &host);
        // The far end goes down: there is no carrier.
        host.set_link("eth0", false).expect("down");
        wait_for(&mut io, false);
        for _ in 0..100 {
            io.send(3, &frame);
        }
        io.flush();
        assert_eq!(io.counters(3).tx_drops, 100, "{kind:?}");
        host.set_link("eth0", true).expect("up");
        wait_for(&mut io, true);
        arrives(&mut io, &host);
        // The interface goes away, and another one comes that has its name.
        let ip = |arguments: &[&str]| {
            let status = Command::new("ip").args(arguments).status();
            assert!(status.expect("ip").success(), "ip {arguments:?}");
        };
        ip(&["link", "delete", &outer]);
        wait_for(&mut io, false);
        io.send(3, &frame);
        io.flush();
        let peer = ["peer", "name", "eth0", "netns", host.name()];
        ip(&[&["link", "add", &outer, "type", "veth"], &peer[..]].concat());
        host.set_link("eth0", true).expect("up");
        ip(&["link", "set", &outer, "up"]);
        wait_for(&mut io, true);
        arrives(&mut io, &host);
        let counters = io.remove(3).expect("an interface");
        assert_eq!(
            (counters.tx_frames, counters.tx_drops),
            (3, 101),
            "{kind:?}"
        );
        assert!(io.remove(3).is_none());
        assert_eq!(io.counters(3).tx_frames, 0);
    }
}

#[test]
fn dense_traffic_is_looked_for_and_none_is_lost() {
    if !permitted() {
        return;
    }
    let (hosts, outer) = two_hosts("dense");
    let mut io = PacketIo::open(&outer).expect("ports");
    let frame = [&MACS[1][..], &MACS[0][..], &[0x12, 0x34], &[7; 46]].concat();
    let rate = 20_000.0;
    let load = hosts[0]
        .spawn_within(move || send_load("eth0", &[frame], Some(rate), Duration::from_millis(500)))
        .expect("started");
    let (mut received, mut last) = (0u64, Instant::now());
    while received == 0 || last.elapsed() < Duration::from_millis(500) {
        let before = received;
        io.wait(Duration::from_millis(20), &mut |interface, _| {
            assert_eq!(interface, 0);
            received += 1;
        });
        if received > before {
            last = Instant::now();
        }
        io.flush();
    }
    let report = load.join().expect("ended").expect("entered").expect("sent");
    assert_eq!(report.refused, 0);
    assert_eq!(received + io.counters(0).rx_kernel_drops, report.sent);
    assert!(report.sent as f64 <= rate * report.elapsed.as_secs_f64() + 32.0);
    // When all is quiet again, a wait is one; other tests' interfaces may end some.
    let (start, mut waits) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(300) {
        io.wait(Duration::from_millis(50), &mut |_, _| {});
        waits += 1;
    }
    assert!(waits < 300, "{waits} waits");
    let counters = hosts[0]
        .within(|| ports::interface_counters("eth0"))
        .expect("in namespace")
        .expect("counters");
    assert_eq!(counters.tx_packets, report.sent);
}

fn netns_path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

fn interface_exists(name: &str) -> bool {
    Path::new("/sys/class/net").join(name).exists()
}

#[test]
fn dropping_removes_everything_and_ends_processes() {
    if !permitted() {
        return;
    }
    let mut host = Namespace::new("gone").expect("namespace");
    let outer = host
        .add_veth("eth0", &VethOptions::default())
        .expect("veth");
    let path = netns_path(host.name());
    let mut child = host.command("sleep").arg("600").spawn().expect("spawned");
    let deadline = Instant::now() + Duration::from_secs(5);
    let inside = |pid: u32| {
        let pids = Command::new("ip")
            .args(["netns", "pids", host.name()])
            .output();
        String::from_utf8_lossy(&pids.expect("ip").stdout)
            .split_whitespace()
            .any(|p| p == pid.to_string())
    };
    while !inside(child.id()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(path.exists() && interface_exists(&outer));
    // The namespaces of living processes are no leftovers.
    clean().expect("clean");
    assert!(path.exists() && interface_exists(&outer));
    drop(host);
    assert!(!path.exists());
    assert!(!interface_exists(&outer));
    assert!(!child.wait().expect("ended").success(), "killed");
}

/// Set in a process that this test starts and kills.
const CHILD: &str = "HOLDFAST_TEST_CHILD";

#[test]
fn a_killed_process_leaves_nothing() {
    if !permitted() {
        return;
    }
    if std::env::var_os(CHILD).is_some() {
        let mut host = Namespace::new("killed").expect("namespace");
        let outer = host
            .add_veth("eth0", &VethOptions::default())
            .expect("veth");
        println!("\nNAMES {} {outer}", host.name());
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let mut child = Command::new(std::env::current_exe().expect("path"))
        .args(["--exact", "a_killed_process_leaves_nothing", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let line = BufReader::new(child.stdout.take().expect("piped"))
        .lines()
        .map_while(Result::ok)
        .find(|l| l.starts_with("NAMES "))
        .expect("names");
    let names: Vec<&str> = line.split(' ').collect();
    let (path, outer) = (netns_path(names[1]), names[2]);
    assert!(path.exists() && interface_exists(outer));
    child.kill().expect("killed");
    child.wait().expect("ended");
    let deadline = Instant::now() + Duration::from_secs(10);
    while (path.exists() || interface_exists(outer)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!path.exists(), "{} is left", path.display());
    assert!(!interface_exists(outer), "{outer} is left");
}

#[test]
fn clean_removes_what_nobody_holds() {
    if !permitted() {
        return;
    }
    let ip = |arguments: &[&str]| {
        let status = Command::new("ip").args(arguments).status();
        assert!(status.expect("ip").success(), "ip {arguments:?}");
    };
    ip(&["netns", "add", "hf987-left"]);
    ip(&[
        "link",
        "add",
        "hf987v0",
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        "hf987-left",
    ]);
    assert!(clean().expect("clean") >= 1);
    assert!(!netns_path("hf987-left").exists());
    assert!(!interface_exists("hf987v0"));
}

#[test]
fn mistakes_are_explained() {
    let error = |r: Result<PacketSocket, ports::PortError>| r.err().map(|e| e.to_string());
    let text = error(PacketSocket::open("no such interface")).expect("refused");
    assert!(text.contains("is no interface name"), "{text}");
    let text = error(PacketSocket::open("hfabsent")).expect("refused");
    assert!(text.contains("hfabsent"), "{text}");
    let text = Namespace::new("a/b").err().expect("refused").to_string();
    assert!(text.contains("cannot name a namespace"), "{text}");
}
