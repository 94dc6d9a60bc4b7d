//! The medium between the nodes: time and the events to come, the links, and the observers and controllers that learn of events.
//! A node reaches the others through it alone. It does not know what nodes do with packets.
//!
//! In front of a link there can be an ordering function, and then the check of the MTU ([`Medium::transmit`] takes packets through both
//! where they are asked for; `ordering` decides the order of packets). An ordering function belongs to the node at the sending end: its
//! packets are lost when the node fails, not when the link does. Packets lose their sequence numbers before they are sent, so the number
//! counts neither for the MTU, nor in captures and counters.

use crate::link::{Attachment, Links};
use crate::node::NodeState;
use crate::notification::{Notification, NotificationEvent};
use crate::observer::{DropReason, Moment, Observation, Observers, Place};
use crate::pool::Pool;
use crate::scheduler::{Event, Scheduler};
use engine::{Output, Packet, Time};

/// The state that all nodes share: time, links, observers and notifications.
#[derive(Debug)]
pub(crate) struct Medium {
    pub(crate) scheduler: Scheduler,
    pub(crate) links: Links,
    pub(crate) observers: Observers,
    pub(crate) notifications: Vec<Notification>,
    /// Frames for external interfaces, until the wall clock's loop takes them.
    pub(crate) outbound: Vec<(usize, Packet)>,
    pub(crate) pool: Pool,
    /// Packets that come out of switches; kept between calls for its capacity.
    pub(crate) outputs: Vec<Output>,
    /// Packets that ordering functions release; kept between calls for its capacity.
    ordered: Vec<Packet>,
    /// The time of day at the network's beginning.
    pub(crate) epoch_ns: u64,
    /// True if the wall clock runs, so that long work delays packets.
    pub(crate) real_time: bool,
    /// The network's seed, for random streams that are created later.
    pub(crate) seed: u64,
}

impl Medium {
    pub(crate) fn new(seed: u64) -> Medium {
        Medium {
            scheduler: Scheduler::default(),
            links: Links::default(),
            observers: Observers::default(),
            notifications: Vec::new(),
            outbound: Vec::new(),
            pool: Pool::default(),
            outputs: Vec::new(),
            ordered: Vec::new(),
            epoch_ns: 0,
            real_time: false,
            seed,
        }
    }

    #[inline(always)]
    pub(crate) fn now_ps(&self) -> Time {
        self.scheduler.now_ps
    }

    /// Queues a notification for controllers of an event at a node, with the present time.
    pub(crate) fn notify(&mut self, own: &NodeState, event: NotificationEvent) {
        self.notifications.push(Notification {
            time_ps: self.now_ps(),
            node: own.name.clone(),
            event,
        });
    }

    /// Reports to observers what has happened at a node or one of its ports (`port`).
    #[inline(always)]
    pub(crate) fn tell(&mut self, own: &NodeState, port: Option<u32>, seen: Observation<'_>) {
        if self.observers.is_active() {
            self.tell_observers(own, port, &seen);
        }
    }

    #[cold]
    fn tell_observers(&mut self, own: &NodeState, port: Option<u32>, seen: &Observation<'_>) {
        let moment = Moment {
            time_ps: self.now_ps(),
            epoch_ns: self.epoch_ns,
        };
        let place = Place {
            node: own.id,
            name: &own.name,
            port,
        };
        self.observers.tell(moment, place, seen);
    }

    /// Reports to observers that `packets` packets were dropped at a node, or at its port `port` if that is given,
    /// and why.
    #[inline(always)]
    pub(crate) fn tell_dropped(
        &mut self,
        own: &NodeState,
        port: Option<u32>,
        reason: DropReason,
        packets: u64,
    ) {
        if self.observers.is_active() && packets > 0 {
            self.tell_observers(own, port, &Observation::Dropped { reason, packets });
        }
    }

    /// Counts packets as lost that were inside a node when it failed, or arrived while it was down, and reports them to
    /// observers.
    pub(crate) fn lose(&mut self, own: &mut NodeState, packets: u64) {
        own.counters.down_drops += packets;
        self.tell_dropped(own, None, DropReason::NodeDown, packets);
    }

    /// Counts a packet that arrives at a node, and reports it to observers. Returns true if the node is up, and so
    /// takes the packet.
    #[inline(always)]
    pub(crate) fn takes_packet(&mut self, own: &mut NodeState, port: u32, packet: &Packet) -> bool {
        let taken = own.takes_packet();
        if self.observers.is_active() {
            match taken {
                true => self.tell_observers(own, Some(port), &Observation::Received(packet)),
                false => self.tell_dropped(own, Some(port), DropReason::NodeDown, 1),
            }
        }
        taken
    }

    /// Counts the arrival of a packet at the end of a link direction. Returns the node and port at which it arrives;
    /// `None` if the direction has failed after the packet was sent, which its `generation` shows.
    #[inline]
    pub(crate) fn arrive(&mut self, direction: u32, generation: u32) -> Option<Attachment> {
        let link = &mut self.links[direction];
        (link.generation == generation).then(|| {
            link.arrived();
            link.to
        })
    }

    /// Sends a packet out of a node's port: to the link or the external interface there.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, own: &mut NodeState, port: u32, packet: Packet) {
        let Some(direction) = own.direction_from(port) else {
            return self.transmit_external(own, port, packet);
        };
        match self.links[direction].is_special(packet.len()) {
            true => self.transmit_specially(own, direction, packet),
            false => self.transmit_by(own, port, direction, packet),
        }
    }

    /// Offers a packet to the link direction at a port, without checking an MTU or ordering packets, and schedules its
    /// arrival. Reports to observers that it waits, or is dropped.
    #[inline(always)]
    fn transmit_by(&mut self, own: &mut NodeState, port: u32, direction: u32, mut packet: Packet) {
        self.count_sent(own, port, &packet);
        let now_ps = self.now_ps();
        let link = &mut self.links[direction];
        let waits = self.observers.is_active() && link.up && link.busy_until_ps() > now_ps;
        let offered = link.offer(now_ps, &mut packet);
        if waits && matches!(offered, Ok(_) | Err(DropReason::Loss)) {
            self.tell(own, Some(port), Observation::Queued(&packet));
        }
        let arrival_ps = match offered {
            Ok(arrival_ps) => arrival_ps,
            Err(reason) => {
                self.tell_dropped(own, Some(port), reason, 1);
                return self.pool.take_back(packet);
            }
        };
        let link = &self.links[direction];
        let (generation, to) = (link.generation, link.to.node);
        debug_assert!(
            self.scheduler.horizon_ps(to) <= arrival_ps,
            "all has come that will"
        );
        self.scheduler
            .push_arrival(arrival_ps, direction, generation, packet);
    }

    /// Counts a packet that leaves a node at a port as sent, whatever happens to it afterwards, and reports it to
    /// observers.
    #[inline]
    fn count_sent(&mut self, own: &mut NodeState, port: u32, packet: &Packet) {
        own.counters.sent += 1;
        self.tell(own, Some(port), Observation::Sent(packet));
    }

    /// Sends a packet out of a port without a link: to the external interface at the port, if there is one; otherwise
    /// drops and counts it.
    fn transmit_external(&mut self, own: &mut NodeState, port: u32, packet: Packet) {
        let Some(number) = own.external_at(port) else {
            own.counters.unconnected_drops += 1;
            return self.tell_dropped(own, Some(port), DropReason::Unconnected, 1);
        };
        self.count_sent(own, port, &packet);
        self.outbound.push((number, packet));
    }

    /// Sends a packet by a link direction that has an MTU or an ordering function, which first takes off its sequence
    /// number and may hold it.
    #[cold]
    fn transmit_specially(&mut self, own: &mut NodeState, direction: u32, mut packet: Packet) {
        let now_ps = self.now_ps();
        let mut sent = std::mem::take(&mut self.ordered);
        match self.links[direction].ordering_mut() {
            None => sent.push(packet),
            Some(ordering) => match ordering.find(&mut packet) {
                None => {
                    ordering.count_untagged();
                    sent.push(packet);
                }
                Some(tag) => {
                    tag.take_off(&mut packet);
                    ordering.receive(now_ps, tag.numbered, packet, &mut sent);
                }
            },
        }
        self.send_ordered(own, direction, sent);
    }

    /// Sends the packets that the ordering function of a link direction has held for their longest time, after its
    /// timer has expired.
    pub(crate) fn ordering_due(&mut self, own: &mut NodeState, direction: u32) {
        let now_ps = self.now_ps();
        let mut sent = std::mem::take(&mut self.ordered);
        if let Some(ordering) = self.links[direction].ordering_mut() {
            // An event that another one, earlier, took the place of says nothing.
            if ordering.wake_ps.is_some_and(|wake_ps| wake_ps <= now_ps) {
                ordering.wake_ps = None;
            }
            ordering.release_due(now_ps, &mut sent);
        }
        self.send_ordered(own, direction, sent);
    }

    /// Sends the packets that a direction's ordering function released, drops those longer than the MTU, and schedules
    /// an event for the time at which the function must release the next.
    fn send_ordered(&mut self, own: &mut NodeState, direction: u32, mut sent: Vec<Packet>) {
        let port = self.links[direction].from.port;
        for packet in sent.drain(..) {
            if self.links[direction].refuses(&packet) {
                self.count_sent(own, port, &packet);
                self.tell_dropped(own, Some(port), DropReason::Mtu, 1);
                self.pool.take_back(packet);
            } else {
                self.transmit_by(own, port, direction, packet);
            }
        }
        self.ordered = sent;
        if let Some(ordering) = self.links[direction].ordering_mut()
            && let Some(due_ps) = ordering.due_ps()
            && ordering.wake_ps.is_none_or(|wake_ps| wake_ps > due_ps)
        {
            ordering.wake_ps = Some(due_ps);
            self.scheduler
                .push(due_ps, Event::OrderingDue { direction });
        }
    }

    /// Drops the packets that the ordering functions at a failed node's ports hold, and counts them as lost.
    pub(crate) fn lose_held(&mut self, own: &mut NodeState) {
        for port in 0..own.ports.len() as u32 {
            if let Some(away) = own.direction_from(port)
                && let Some(ordering) = self.links[away].ordering_mut()
            {
                let lost = ordering.lose_all();
                self.lose(own, lost);
            }
        }
    }
}
