use super::*;
use proptest::prelude::*;

const ONE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const TWO: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const ANSWER: Heard = Heard::Answer { overrides: true };

fn address(number: u32) -> IpAddr {
    IpAddr::from((0x0a00_0000 + number).to_be_bytes())
}

fn packet(number: u32) -> Packet {
    Packet::new(&number.to_be_bytes())
}

fn number(packet: &Packet) -> u32 {
    u32::from_be_bytes(packet.stored().try_into().unwrap())
}

fn numbers(packets: &VecDeque<Packet>) -> Vec<u32> {
    packets.iter().map(number).collect()
}

fn at(ps: u64) -> Time {
    Time::from(ps)
}

fn asked(due: &[Due]) -> Vec<Option<MacAddress>> {
    let asked = due.iter().filter_map(|due| match due {
        Due::Ask(_, _, to) => Some(*to),
        Due::Drop(..) => None,
    });
    asked.collect()
}

/// The script is that of RFC 4861, 7.2.2 and 7.3.3, by hand.
#[test]
fn a_neighbour_is_asked_for_believed_and_asked_again() {
    let mut cache = Neighbours::default();
    for n in 0..3 {
        let sending = cache.send(at(n.into()), address(1), 0, packet(n));
        assert!(matches!(sending, Sending::Waits(None)));
    }
    assert_eq!(cache.due_ps(), Some(at(0)));
    assert_eq!(asked(&cache.due(at(0))), [None]);
    assert!(cache.due(at(S - 1)).is_empty());
    assert_eq!(asked(&cache.due(at(S))), [None]);
    let released = cache.heard(at(S + 5), address(1), (ONE, 0), ANSWER);
    assert_eq!(numbers(&released), [0, 1, 2]);
    // Believed for 30 s, then used for 5 s more, then asked at the address that is known.
    let believed_ps = S + 5 + REACHABLE_PS;
    for (now_ps, expected) in [(believed_ps - 1, false), (believed_ps, true)] {
        match cache.send(at(now_ps), address(1), 0, packet(9)) {
            Sending::To { mac, news, .. } => assert_eq!((mac, news), (ONE, expected)),
            Sending::Waits(_) => panic!("it is known"),
        }
    }
    let probed_ps = believed_ps + DELAY_PS;
    assert_eq!(cache.due_ps(), Some(at(probed_ps)));
    for n in 0..3 {
        assert_eq!(asked(&cache.due(at(probed_ps + n * S))), [Some(ONE)]);
    }
    assert!(cache.knows(address(1)));
    assert!(cache.due(at(probed_ps + 3 * S)).is_empty());
    assert!(!cache.knows(address(1)) && cache.due_ps().is_none());
}

#[test]
fn packets_to_nobody_are_dropped_after_three_requests() {
    let mut cache = Neighbours::default();
    for n in 0..MOST_WAITING as u32 + 2 {
        let dropped = match cache.send(at(0), address(1), 3, packet(n)) {
            Sending::Waits(dropped) => dropped.as_ref().map(number),
            Sending::To { .. } => panic!("nobody answered"),
        };
        // The oldest makes room.
        assert_eq!(dropped, n.checked_sub(MOST_WAITING as u32));
    }
    for n in 0..3 {
        assert_eq!(asked(&cache.due(at(n * S))), [None]);
    }
    let due = cache.due(at(3 * S));
    let [Due::Drop(3, packets)] = &due[..] else {
        panic!("{due:?}");
    };
    assert_eq!(packets.len(), MOST_WAITING);
    assert!(!cache.knows(address(1)) && cache.due_ps().is_none());
}

#[test]
fn forged_messages_enter_what_asked_this_host_and_are_bounded() {
    let mut cache = Neighbours::default();
    let told = [ANSWER, Heard::Telling { overrides: true }];
    for (n, heard) in told.into_iter().enumerate() {
        cache.heard(at(0), address(n as u32), (ONE, 0), heard);
        assert!(!cache.knows(address(n as u32)), "{heard:?}");
    }
    for mac in [MacAddress::BROADCAST, MacAddress::default()] {
        cache.heard(at(0), address(1), (mac, 0), Heard::Asking);
        assert!(!cache.knows(address(1)), "{mac}");
    }
    // One that is used, and one that is being asked for, outlive 100,000 that nobody uses.
    cache.heard(at(0), address(1), (ONE, 0), Heard::Asking);
    cache.send(at(0), address(2), 0, packet(0));
    for n in 10..100_010 {
        cache.heard(at(0), address(n), (TWO, 0), Heard::Asking);
        if n % 500 == 0 {
            cache.send(at(0), address(1), 0, packet(n));
        }
        assert!(cache.by_address.len() <= MOST_NEIGHBOURS);
    }
    assert!(cache.knows(address(1)) && cache.knows(address(2)));
    // If all are being asked for, another one is not.
    let mut cache = Neighbours::default();
    for n in 0..MOST_NEIGHBOURS as u32 {
        assert!(matches!(
            cache.send(at(0), address(n), 0, packet(n)),
            Sending::Waits(None)
        ));
    }
    let refused = cache.send(at(0), address(99_999), 0, packet(7));
    assert!(matches!(refused, Sending::Waits(Some(packet)) if number(&packet) == 7));
}

/// RFC 4861, 7.2.5: without the override flag a different address only casts doubt.
#[test]
fn what_does_not_override_casts_doubt() {
    let mut cache = Neighbours::default();
    cache.send(at(0), address(1), 0, packet(0));
    cache.heard(at(0), address(1), (ONE, 0), ANSWER);
    let gentle = Heard::Telling { overrides: false };
    cache.heard(at(1), address(1), (TWO, 0), gentle);
    match cache.send(at(2), address(1), 0, packet(1)) {
        Sending::To { mac, news, .. } => assert_eq!((mac, news), (ONE, true)),
        Sending::Waits(_) => panic!("it is known"),
    }
    cache.heard(
        at(3),
        address(1),
        (TWO, 0),
        Heard::Telling { overrides: true },
    );
    match cache.send(at(4), address(1), 0, packet(1)) {
        Sending::To { mac, .. } => assert_eq!(mac, TWO),
        Sending::Waits(_) => panic!("it is known"),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Hear(u32, bool, Heard),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let heard = prop_oneof![
        Just(Heard::Asking),
        any::<bool>().prop_map(|overrides| Heard::Answer { overrides }),
        any::<bool>().prop_map(|overrides| Heard::Telling { overrides }),
    ];
    prop_oneof![
        4 => (0u32..4).prop_map(Step::Send),
        1 => (0u32..4, any::<bool>(), heard).prop_map(|(to, one, heard)| Step::Hear(to, one, heard)),
        2 => prop_oneof![0u64..10, 0..2 * S, 0..40 * S].prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is sent, heard and waited for: each packet leaves once, is dropped once or waits; those to one address that leave are in
    /// the order in which they were sent; nobody is asked for twice in a second; and what was due is not due again.
    #[test]
    fn packets_are_conserved_and_in_order_and_questions_are_rare(steps in proptest::collection::vec(step(), 1..120)) {
        let mut cache = Neighbours::default();
        let (mut now_ps, mut sent) = (0u64, 0u32);
        let (mut gone, mut left): (u32, BTreeMap<IpAddr, Vec<u32>>) = (0, BTreeMap::new());
        let mut asked_ps: BTreeMap<IpAddr, u64> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Send(to) => {
                    match cache.send(at(now_ps), address(to), 0, packet(sent)) {
                        Sending::To { packet, mac, .. } => {
                            prop_assert!(mac == ONE || mac == TWO);
                            left.entry(address(to)).or_default().push(number(&packet));
                        }
                        Sending::Waits(dropped) => gone += u32::from(dropped.is_some()),
                    }
                    sent += 1;
                }
                Step::Hear(from, one, heard) => {
                    let mac = if one { ONE } else { TWO };
                    let released = cache.heard(at(now_ps), address(from), (mac, 0), heard);
                    left.entry(address(from)).or_default().extend(numbers(&released));
                }
                Step::Wait(ps) => now_ps += ps,
            }
            // As a host does after each of them: late events are possible, early ones are not.
            for due in cache.due(at(now_ps)) {
                match due {
                    Due::Ask(of, _, _) => {
                        let before = asked_ps.insert(of, now_ps);
                        prop_assert!(before.is_none_or(|before| now_ps >= before + RETRANSMIT_PS));
                    }
                    Due::Drop(_, packets) => gone += packets.len() as u32,
                }
            }
            prop_assert!(cache.due_ps().is_none_or(|due_ps| due_ps > at(now_ps)));
            let waiting: usize = cache.by_address.values().map(|it| it.waiting.len()).sum();
            let all: usize = left.values().map(Vec::len).sum();
            prop_assert_eq!(sent as usize, all + waiting + gone as usize);
            for neighbour in cache.by_address.values() {
                prop_assert!(neighbour.waiting.len() <= MOST_WAITING);
                let waits = matches!(neighbour.state, State::Incomplete { .. });
                prop_assert!(waits || neighbour.waiting.is_empty());
            }
        }
        for packets in left.values() {
            prop_assert!(packets.is_sorted());
        }
        prop_assert_eq!(cache.forget() + u64::from(gone) + left.values().map(|it| it.len() as u64).sum::<u64>(), u64::from(sent));
    }
}
