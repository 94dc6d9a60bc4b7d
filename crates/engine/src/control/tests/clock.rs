//! The clock: instants of any size, and a clock that is set back.

use super::*;
use crate::Time;
use crate::digest::DigestConfig;
use crate::meter::MeterConfig;

const S: u64 = 1_000_000_000_000;
const METER: MeterConfig = MeterConfig {
    cir: 10,
    cburst: 5,
    pir: 10,
    pburst: 5,
};

fn at(seconds: u64) -> Time {
    Time::from_ps(u128::from(seconds) * u128::from(S))
}

/// Returns a switch that has an entry with an idle timeout of one second, and a meter without any tokens left.
fn used_up(now_ps: Time) -> Switch {
    let mut switch = switch();
    switch.set_now_ps(now_ps);
    let entry = Entry {
        idle_timeout_ns: 1_000_000_000,
        ..forward(exact(1), 0, 1)
    };
    switch.insert_entry(EXACT, entry).expect("fits");
    switch
        .write_meter(ir::MeterId(0), 0, Some(METER))
        .expect("is there");
    assert_eq!(greens(&mut switch, now_ps), 5);
    assert_eq!(greens(&mut switch, now_ps), 0);
    switch
}

/// Returns how many of ten packets that arrive at `now_ps` the meter marks green.
fn greens(switch: &mut Switch, now_ps: Time) -> usize {
    switch.set_now_ps(now_ps);
    let runtime = switch.runtime_mut();
    let colours = (0..10).map(|_| runtime.meter_execute(ir::MeterId(0), 0, 64, now_ps));
    colours.filter(|&colour| colour == 0).count()
}

fn idle(switch: &mut Switch, now_ps: Time) -> usize {
    switch.set_now_ps(now_ps);
    switch.runtime_mut().run_idle_timers(usize::MAX);
    switch.take_idle_entries(now_ps, usize::MAX).len()
}

#[test]
fn a_clock_that_is_set_back_stops_nothing() {
    // By all the time that 64 bits of picoseconds have, as they would when they begin again, and by less.
    for begin in [
        at(3),
        at(1_000_000),
        Time::from_ps((1 << 64) - 5),
        at(4_000_000_000),
    ] {
        let mut switch = used_up(begin);
        assert_eq!(
            greens(&mut switch, Time::ZERO),
            0,
            "no token comes of a step"
        );
        assert_eq!(idle(&mut switch, Time::ZERO), 0);
        assert_eq!(greens(&mut switch, at(1)), 5, "{begin:?}");
        assert_eq!(idle(&mut switch, at(1)), 1, "{begin:?}");
        assert_eq!(idle(&mut switch, at(2)), 1, "{begin:?}");
    }
}

#[test]
fn somebody_late_does_not_set_the_clock_back() {
    let begin = at(1000);
    let mut switch = used_up(begin);
    for behind in [1, S / 2, S] {
        assert_eq!(greens(&mut switch, begin.before(behind)), 0);
        assert_eq!(
            greens(&mut switch, begin),
            0,
            "a packet that is late makes no tokens"
        );
    }
}

#[test]
fn messages_that_wait_are_due_after_a_clock_was_set_back() {
    let mut switch = switch();
    let digest = ir::DigestId(0);
    let update = Update {
        operation: Operation::Insert,
        entity: Entity::Digest {
            digest,
            config: DigestConfig {
                max_list_size: 0,
                max_timeout_ns: 1_000_000_000,
                ack_timeout_ns: 1_000_000_000,
            },
        },
    };
    switch.write(update).expect("is new");
    let message = [7, 0, 0];
    let push = |switch: &mut Switch, now_ps: Time| {
        switch.set_now_ps(now_ps);
        switch.runtime_mut().digest(digest, &message);
    };
    push(&mut switch, at(1_000_000));
    switch.set_now_ps(at(5));
    assert_eq!(switch.take_due_digests(at(5), usize::MAX).len(), 0);
    switch.set_now_ps(at(6));
    assert_eq!(switch.take_due_digests(at(6), usize::MAX).len(), 1);
    // Nor does a list that is not acknowledged suppress its messages until the clock is where it was.
    push(&mut switch, at(2));
    push(&mut switch, at(4));
    assert_eq!(switch.take_due_digests(at(9), usize::MAX).len(), 1);
}
