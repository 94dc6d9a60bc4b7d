//! Real time, so bounds are one-sided where they can be (nothing early, nothing lost) and generous where they cannot.
#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for what runs in real time, or measures"
)]

use super::*;
use crate::node::NodeState;
use crate::switch::closure::{CPU_PORT, Closure};
use crate::{
    Change, Crossings, Destination, FailureTarget, HostConfig, LinkConfig, LinkId, Loss,
    MacAddress, Milliseconds, NotificationEvent, Ping, UdpStream,
};
use engine::{Output, Packet};
use std::net::Ipv4Addr;

const MS: u64 = 1_000_000_000;
/// The time that a loaded machine may take for something that should be at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// The frames that a test puts in, those that come out and their times, and the bell for new frames.
#[derive(Default)]
struct Wires {
    inbound: VecDeque<(usize, Vec<u8>)>,
    outbound: Vec<(Instant, usize, Vec<u8>)>,
    changes: Vec<(usize, bool)>,
    woken: bool,
    full: bool,
}

/// Interfaces of a test.
#[derive(Clone, Default)]
struct FakeIo {
    wires: Arc<(Mutex<Wires>, Condvar)>,
    without_waker: bool,
}

impl FakeIo {
    fn arrive(&self, interface: usize, frame: &[u8]) {
        locked(&self.wires.0)
            .inbound
            .push_back((interface, frame.to_vec()));
        self.wires.1.notify_all();
    }

    /// Waits until at least `count` frames have been sent, and returns them with their times and interfaces.
    fn outbound(&self, count: usize) -> Vec<(Instant, usize, Vec<u8>)> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if locked(&self.wires.0).outbound.len() >= count {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        locked(&self.wires.0).outbound.clone()
    }
}

impl FrameIo for FakeIo {
    fn send(&mut self, interface: usize, frame: &[u8]) -> SendOutcome {
        let mut wires = locked(&self.wires.0);
        if wires.full {
            return SendOutcome::Dropped;
        }
        wires
            .outbound
            .push((Instant::now(), interface, frame.to_vec()));
        SendOutcome::Accepted
    }

    fn wait(&mut self, timeout: Duration, rx: &mut dyn FnMut(usize, &[u8])) {
        let wires = locked(&self.wires.0);
        let idle = |wires: &mut Wires| {
            wires.inbound.is_empty() && wires.changes.is_empty() && !wires.woken
        };
        let waited = self.wires.1.wait_timeout_while(wires, timeout, idle);
        let mut wires = waited.unwrap_or_else(PoisonError::into_inner).0;
        wires.woken = false;
        while let Some((interface, frame)) = wires.inbound.pop_front() {
            rx(interface, &frame);
        }
    }

    fn take_changes(&mut self, tell: &mut dyn FnMut(usize, bool)) {
        for (interface, up) in locked(&self.wires.0).changes.drain(..) {
            tell(interface, up);
        }
    }

    fn waker(&self) -> Option<Waker> {
        let wires = Arc::clone(&self.wires);
        let waker: Waker = Arc::new(move || {
            locked(&wires.0).woken = true;
            wires.1.notify_all();
        });
        (!self.without_waker).then_some(waker)
    }
}

/// Builds a network of two interfaces joined by a gigabit link with a delay of `delay_ps` picoseconds.
fn wire(delay_ps: u64) -> (Network, LinkId) {
    let mut network = Network::new(1, 0);
    network.add_interface("left", "veth0").unwrap();
    network.add_interface("right", "veth1").unwrap();
    let link = network
        .add_link(
            "left",
            0,
            "right",
            0,
            LinkConfig::new(1_000_000_000, delay_ps),
        )
        .unwrap();
    (network, link)
}

/// Builds a network of the hosts h1 and h2 joined by a link without a switch; each is the other's gateway.
fn modelled_pair() -> Network {
    let mut network = Network::new(1, 0);
    let mac = |number| MacAddress([2, 0, 0, 0, 0, number]);
    for (name, number, other) in [("h1", 1, 2), ("h2", 2, 1)] {
        let config = HostConfig {
            mac: mac(number),
            ipv4: Ipv4Addr::new(10, 0, number, 1),
            prefix_len: 24,
            gateway_mac: mac(other),
            ipv6: None,
        };
        network.add_host(name, config).unwrap();
    }
    network
        .add_link("h1", 0, "h2", 0, LinkConfig::new(1_000_000_000, MS))
        .unwrap();
    network
}

#[test]
fn frames_cross_a_link_in_real_time() {
    const DELAY: Duration = Duration::from_millis(5);
    for without_waker in [false, true] {
        let (network, link) = wire(5 * MS);
        let io = FakeIo {
            without_waker,
            ..FakeIo::default()
        };
        let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        let mut sent = Vec::new();
        for i in 0..10u8 {
            sent.push(Instant::now());
            io.arrive(usize::from(i % 2), &[i; 100]);
            std::thread::sleep(Duration::from_millis(1));
        }
        let out = io.outbound(10);
        for (i, (at, interface, frame)) in out.iter().enumerate() {
            assert_eq!((*interface, &frame[..]), (1 - i % 2, &[i as u8; 100][..]));
            let took = *at - sent[i];
            assert!(took >= DELAY, "frame {i} took {took:?}");
            assert!(took < DELAY + PATIENCE);
        }
        let (network, statistics) = clock.stop().unwrap();
        assert_eq!(
            (statistics.frames_in, statistics.frames_out, out.len()),
            (10, 10, 10)
        );
        let counters = network.link_counters(link).unwrap();
        assert_eq!(
            (counters.a_to_b.delivered, counters.b_to_a.delivered),
            (5, 5)
        );
        assert_eq!(
            network.node_counters("left").unwrap().received,
            10,
            "five from outside, five from the link"
        );
    }
}

#[test]
fn delays_are_right_when_the_machine_is() {
    // The best of many tells about the loop rather than about what else the machine does.
    let (network, _) = wire(2 * MS);
    let io = FakeIo::default();
    let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
    let mut best = Duration::MAX;
    for i in 0..50 {
        let sent = Instant::now();
        io.arrive(0, &[0; 100]);
        let out = io.outbound(i + 1);
        best = best.min(out[i].0 - sent);
    }
    assert!(best >= Duration::from_millis(2), "{best:?}");
    assert!(best < Duration::from_micros(2500), "{best:?}");
    drop(clock);
}

#[test]
fn commands_run_between_events_and_answer() {
    let (network, link) = wire(MS);
    let io = FakeIo::default();
    let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
    let asked = Instant::now();
    let before_ps = clock.now_ps();
    let seen_ps = clock.call(|network| network.now_ps()).unwrap();
    assert!((before_ps..=clock.now_ps()).contains(&seen_ps));
    assert!(asked.elapsed() < LONGEST_SLEEP, "the waker ends the wait");
    assert_eq!(
        clock.call(move |network| network.set_link_state(link, false, None)),
        Ok(Ok(()))
    );
    io.arrive(0, &[0; 100]);
    let dropped = || {
        clock
            .call(move |network| network.link_counters(link))
            .unwrap()
            .unwrap()
            .a_to_b
            .down_drops
    };
    let end = Instant::now() + PATIENCE;
    while dropped() == 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(dropped(), 1);
    assert_eq!(
        clock.call(|network| network.set_node_state("nobody", true, None).is_err()),
        Ok(true)
    );
    drop(clock);
}

#[test]
fn a_link_changes_while_the_clock_runs() {
    let (network, link) = wire(0);
    let io = FakeIo::default();
    let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
    let change = |change: Change| {
        let made = clock.call(move |network| network.apply(&change)).unwrap();
        made.unwrap();
    };
    let none = || Change::of(FailureTarget::Link(link), None);
    let lost = || {
        let counters = clock.call(move |network| network.link_counters(link));
        counters.unwrap().unwrap().a_to_b.loss_drops
    };
    change(Change {
        loss: Some(Loss::Bernoulli(1.0)),
        ..none()
    });
    io.arrive(0, &[0; 100]);
    let end = Instant::now() + PATIENCE;
    while lost() == 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(lost(), 1);
    change(Change {
        loss: Some(Loss::None),
        delay_ms: Some(Milliseconds::try_from(30.0).unwrap()),
        ..none()
    });
    let sent = Instant::now();
    io.arrive(0, &[1; 100]);
    let out = io.outbound(1);
    assert_eq!(out[0].2, [1; 100]);
    assert!(out[0].0 - sent >= Duration::from_millis(30));
    drop(clock);
}

#[test]
fn posted_commands_run_in_order() {
    let clock = WallClock::start(modelled_pair(), Box::new(NoInterfaces::default())).unwrap();
    let started = Instant::now();
    let order = Arc::new(Mutex::new(Vec::new()));
    for i in 0..1000 {
        let order = Arc::clone(&order);
        clock.post(move |_| locked(&order).push(i)).unwrap();
    }
    clock.call(|_| ()).unwrap();
    assert!(locked(&order).iter().copied().eq(0..1000));
    // More commands than a burst do not wait for the next wake-up.
    assert!(started.elapsed() < LONGEST_SLEEP * (1000 / COMMAND_BURST as u32 - 2));
}

#[test]
fn notifications_are_polled() {
    let mut network = modelled_pair();
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    frame[12] = 0x99;
    network.send_frame("h1", &frame).unwrap();
    let clock = WallClock::start(network, Box::new(NoInterfaces::default())).unwrap();
    let notifications = clock.poll(PATIENCE);
    assert_eq!(notifications.len(), 1);
    // 672 ns on the wire, and a millisecond.
    assert_eq!(notifications[0].time_ps, Time::from(672_000 + MS));
    assert_eq!(
        notifications[0].event,
        NotificationEvent::HostFrame { data: frame }
    );
    let waited = Instant::now();
    assert_eq!(clock.poll(Duration::from_millis(20)), []);
    assert!(waited.elapsed() >= Duration::from_millis(20));
    assert_eq!(clock.poll(Duration::ZERO), []);
}

#[test]
fn notifications_that_nobody_polls_are_bounded_and_counted() {
    let clock = WallClock::start(modelled_pair(), Box::new(NoInterfaces::default())).unwrap();
    let node = clock
        .call(|network| network.node_id("h1"))
        .unwrap()
        .unwrap();
    clock
        .call(move |network| {
            let own = NodeState::new(node, "h1");
            for _ in 0..MAX_NOTIFICATIONS + 5 {
                let data = Vec::new();
                let told = NotificationEvent::PacketIn { port: 0, data };
                network.medium.notify(&own, told);
            }
            network.medium.notify(&own, NotificationEvent::Digest);
        })
        .unwrap();
    clock.call(|_| ()).unwrap();
    // The loop publishes after a burst of commands.
    let first = clock.poll(PATIENCE);
    // A word that comes once, until it is heeded, is not lost.
    assert_eq!(first.len(), MAX_NOTIFICATIONS + 1);
    assert_eq!(clock.stop().unwrap().1.notifications_lost, 5);
}

#[test]
fn modelled_hosts_keep_time() {
    let mut network = modelled_pair();
    let stream = UdpStream {
        source: "h1".to_owned(),
        destination: Destination::Host("h2".to_owned()),
        packets_per_s: 1000.0,
        spacing: crate::Spacing::Constant,
        payload_bytes: 100,
        start_ps: Time::ZERO,
        stop_ps: Time::from(100 * MS),
        source_port: 1,
        destination_port: 2,
        log_packets: true,
    };
    let ping = Ping {
        source: "h2".to_owned(),
        destination: Destination::Host("h1".to_owned()),
        interval_ps: 10 * MS,
        start_ps: Time::from(5 * MS),
        stop_ps: Time::from(100 * MS),
        payload_bytes: 0,
    };
    let stream = network.add_udp_stream(&stream).unwrap();
    let ping = network.add_ping(&ping).unwrap();
    let clock = WallClock::start(network, Box::new(NoInterfaces::default())).unwrap();
    while clock.now_ps() < Time::from(110 * MS) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (network, statistics) = clock.stop().unwrap();
    // The model decides its times, however late the loop was.
    let times: Vec<u64> = (0..100).map(|k| k * MS).collect();
    assert_eq!(network.sent(stream).unwrap().sent_ps, times);
    let log = network.received(stream).unwrap();
    assert_eq!(log.len(), 100);
    // 142 bytes are 166 on the wire.
    assert!(
        log.received_ps
            .iter()
            .zip(&log.sent_ps)
            .all(|(r, s)| r - s >= MS + 1_328_000)
    );
    assert_eq!(network.received(ping).unwrap().len(), 10);
    assert!(statistics.events >= 100 + 100 + 10 + 20);
    assert!(statistics.total_lateness_ps >= statistics.max_lateness_ps);
}

#[test]
fn interfaces_that_take_nothing_count() {
    let (network, _) = wire(0);
    let io = FakeIo::default();
    locked(&io.wires.0).full = true;
    let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
    io.arrive(0, &[0; 60]);
    let drops = || {
        clock
            .call(|network| network.node_counters("right"))
            .unwrap()
            .unwrap()
            .interface_drops
    };
    let end = Instant::now() + PATIENCE;
    while drops() == 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(drops(), 1);
    // A frame from an interface that the network does not have is nobody's.
    io.arrive(7, &[0; 60]);
    clock.call(|_| ()).unwrap();
}

#[test]
fn stopping_and_going_on() {
    let (network, link) = wire(MS);
    let io = FakeIo::default();
    let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
    while clock.now_ps() < Time::from(2 * MS) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stopped = Instant::now();
    let (network, _) = clock.stop().unwrap();
    assert!(stopped.elapsed() < LONGEST_SLEEP + PATIENCE);
    let at_ps = network.now_ps();
    assert!(at_ps >= Time::from(2 * MS));
    std::thread::sleep(Duration::from_millis(10));
    let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
    assert!(clock.now_ps() >= at_ps);
    io.arrive(0, &[5; 60]);
    assert_eq!(io.outbound(1).len(), 1);
    let (network, _) = clock.stop().unwrap();
    assert_eq!(network.link_counters(link).unwrap().a_to_b.delivered, 1);
    assert!(network.now_ps() > at_ps);
}

#[test]
fn a_panic_in_a_command_is_reported() {
    let clock = WallClock::start(modelled_pair(), Box::new(NoInterfaces::default())).unwrap();
    assert!(matches!(
        clock.call(|_| panic!("out of coffee")),
        Err::<(), _>(NetError::Stopped(_))
    ));
    // The thread is still busy dying for a moment.
    let end = Instant::now() + PATIENCE;
    while clock.post(|_| ()).is_ok() && Instant::now() < end {
        std::thread::yield_now();
    }
    assert!(matches!(clock.post(|_| ()), Err(NetError::Stopped(_))));
    assert_eq!(
        clock.stop().unwrap_err(),
        NetError::Stopped("out of coffee".to_owned())
    );
}

#[test]
fn an_overdue_network_stays_in_order() {
    // Events from the past, as after a long pause of the thread: the frames that come in meanwhile wait for their turn.
    let (mut network, link) = wire(MS);
    for i in 0..2000u64 {
        network
            .set_link_state(link, i % 2 == 1, Some(Time::from(i * 1000)))
            .unwrap();
    }
    let io = FakeIo::default();
    for i in 0..10 {
        io.arrive(0, &[i; 60]);
    }
    let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
    io.arrive(0, &[10; 60]);
    while clock.now_ps() < Time::from(20 * MS) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (network, _) = clock.stop().unwrap();
    let counters = network.link_counters(link).unwrap().a_to_b;
    assert_eq!(counters.offered, 11);
    assert_eq!(counters.offered, counters.delivered + counters.down_drops);
    assert_eq!(network.pending_events(), 0);
}

/// Builds a network with a switch whose ports 1 to 3 are interfaces 0 to 2. It forwards between ports 1 and 2, and
/// from port 3 to the controller. Into byte 1 of a packet, it writes the packet's position among those of the same
/// time.
fn switch_on_interfaces() -> Network {
    let mut network = Network::new(1, 0);
    let mut last = (0, 0u8);
    let pipeline = Closure(move |now_ps, port, mut packet: Packet, out: &mut Vec<_>| {
        last = (now_ps, if last.0 == now_ps { last.1 + 1 } else { 0 });
        packet.stored_mut()[1] = last.1;
        let port = if port == 3 { CPU_PORT } else { 3 - port };
        out.push(Output::new(port, packet));
    });
    network.add_pipeline("s", Box::new(pipeline), 0).unwrap();
    for (number, name) in ["veth0", "veth1", "veth2"].into_iter().enumerate() {
        let port = number as u32 + 1;
        assert_eq!(network.attach_interface("s", port, name), Ok(number));
    }
    network
}

#[test]
fn ports_without_links_pass_bursts() {
    let io = FakeIo::default();
    // All of it is there when the loop looks first.
    for i in 0..200 {
        io.arrive(usize::from(i) % 2, &[i, 0, 0, 0]);
    }
    io.arrive(2, &[7, 0]);
    let clock = WallClock::start(switch_on_interfaces(), Box::new(io.clone())).unwrap();
    let outbound = io.outbound(200);
    for (i, (_, interface, frame)) in outbound.iter().enumerate() {
        assert_eq!((*interface, frame[0]), (1 - i % 2, i as u8));
        assert_eq!(frame[1], i as u8, "one burst at one time");
    }
    let notifications = clock.poll(PATIENCE);
    assert_eq!(
        notifications.last().unwrap().event,
        NotificationEvent::PacketIn {
            port: CPU_PORT,
            data: vec![7, 200]
        }
    );
    let (network, statistics) = clock.stop().unwrap();
    assert_eq!((statistics.frames_in, statistics.frames_out), (201, 200));
    assert_eq!(statistics.events, 0, "no event for any of them");
    let counters = network.node_counters("s").unwrap();
    assert_eq!((counters.received, counters.sent), (201, 200));
    assert_eq!(counters.packet_ins, 1);
}

#[test]
fn a_port_without_a_link_is_captured_and_fails_with_its_switch() {
    let io = FakeIo::default();
    let mut network = switch_on_interfaces();
    let file = std::env::temp_dir().join(format!("holdfast-port-{}.pcap", std::process::id()));
    network
        .capture_to_path("s", 2, Crossings::Both, &file)
        .unwrap();
    network.set_node_state("s", false, None).unwrap();
    io.arrive(0, &[1; 20]);
    let clock = WallClock::start(network, Box::new(io.clone())).unwrap();
    let down_drops = || {
        let counters = clock.call(|network| network.node_counters("s").unwrap());
        counters.unwrap().down_drops
    };
    let end = Instant::now() + PATIENCE;
    while down_drops() == 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(down_drops(), 1);
    clock
        .call(|network| network.set_node_state("s", true, None))
        .unwrap()
        .unwrap();
    io.arrive(0, &[2; 20]);
    io.arrive(1, &[3; 20]);
    assert_eq!(io.outbound(2).len(), 2);
    clock.stop().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    let mut first = Vec::new();
    let mut records = wire::pcap::Reader::new(&bytes).unwrap();
    while let Some(Ok(record)) = records.next() {
        first.push(record.frame[0]);
    }
    first.sort_unstable();
    // The frames that left at port 2, and those that came in there.
    assert_eq!(first, [2, 3]);
}

#[test]
fn interfaces_come_and_go_while_packets_pass() {
    let io = FakeIo::default();
    let clock = WallClock::start(switch_on_interfaces(), Box::new(io.clone())).unwrap();
    let number = clock
        .call(|network| network.detach_interface("s", 2))
        .unwrap();
    assert_eq!(number, Ok(1));
    // To a port that is not there, and from an interface that is nobody's.
    io.arrive(0, &[1; 20]);
    io.arrive(1, &[2; 20]);
    let unconnected = || {
        let counters = clock.call(|network| network.node_counters("s").unwrap());
        counters.unwrap().unconnected_drops
    };
    let end = Instant::now() + PATIENCE;
    while unconnected() == 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(unconnected(), 1);
    // The number is given again.
    let number = clock
        .call(|network| network.attach_interface("s", 2, "veth9"))
        .unwrap();
    assert_eq!(number, Ok(1));
    io.arrive(0, &[3; 20]);
    let outbound = io.outbound(1);
    assert_eq!((outbound[0].1, outbound[0].2[0]), (1, 3));
    let (network, _) = clock.stop().unwrap();
    let names: Vec<_> = network.interfaces().collect();
    assert_eq!(names, [(0, "veth0"), (1, "veth9"), (2, "veth2")]);
}

#[test]
fn an_interface_that_goes_down_is_a_port_change() {
    let io = FakeIo::default();
    locked(&io.wires.0).changes.push((1, false));
    let clock = WallClock::start(switch_on_interfaces(), Box::new(io.clone())).unwrap();
    let up = || {
        clock
            .call(|network| network.port_is_up("s", 2).unwrap())
            .unwrap()
    };
    let change = |port, up| NotificationEvent::PortChange { port, up };
    let told = || {
        let events = clock.poll(PATIENCE).into_iter().map(|told| told.event);
        events.collect::<Vec<_>>()
    };
    // That the ports are there, and that one of them is down.
    let mut first = told();
    while first.len() < 4 {
        first.extend(told());
    }
    assert_eq!(first[..3], [1, 2, 3].map(|port| change(port, true)));
    assert_eq!(first[3..], [change(2, false)]);
    assert!(!up());
    // Said again, it is no news; of an interface that is not there, neither.
    locked(&io.wires.0)
        .changes
        .extend([(1, false), (9, false), (1, true)]);
    io.wires.1.notify_all();
    assert_eq!(told(), [change(2, true)]);
    assert!(up());
    let detach = |network: &mut Network| network.detach_interface("s", 2).map(drop);
    clock.call(detach).unwrap().unwrap();
    assert_eq!(told(), [change(2, false)]);
}
