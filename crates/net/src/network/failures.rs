//! Failures and repairs of a network's links and nodes, at given or random times. `detect` informs the switches.

use super::Network;
use crate::LinkId;
use crate::NodeId;
use crate::error::{NetError, out_of_range};
use crate::failure::{Failing, FailureRecord, RandomFailures};
use crate::link::LinkDirection;
use crate::link::change::{Change, FailureTarget};
use crate::medium::Medium;
use crate::observer::{DropReason, Observation};
use crate::scheduler::Event;
use crate::switch::{SwitchNode, Timer};
use engine::Time;

/// Requests for failures.
impl Network {
    /// Applies a change of a link, direction or node, or schedules it for its time. Fails if there is no such link or
    /// node, the time is in the past, a parameter is out of range, or the change of a node concerns more than its
    /// state.
    pub fn apply(&mut self, change: &Change) -> Result<(), NetError> {
        change.check()?;
        let directions = match &change.target {
            FailureTarget::Link(link) => self.both_directions(*link)?,
            FailureTarget::Direction(link, direction) => {
                [self.medium.links.number(*link, *direction)?; 2]
            }
            FailureTarget::Node(node) => {
                if !change.is_of_state() {
                    let expected = "of a link, but for whether it works";
                    return Err(out_of_range("what changes", expected));
                }
                let (node, up) = (self.node_id(node)?, change.up);
                let event = up.map(|up| Event::NodeState { node, up });
                return event.map_or(Ok(()), |event| self.at_or_now(change.at_ps, event));
            }
        };
        let change = Box::new(change.clone());
        let (at_ps, event) = (change.at_ps, Event::DirectionChange { directions, change });
        self.at_or_now(at_ps, event)
    }

    /// Makes both directions of a link fail (`up` is false) or be repaired at `at_ps`, or now if that is `None`.
    /// Packets in the queue or on the wire of a failing link are lost. Fails if there is no such link, or the time is
    /// in the past.
    pub fn set_link_state(
        &mut self,
        link: LinkId,
        up: bool,
        at_ps: Option<Time>,
    ) -> Result<(), NetError> {
        self.apply(&Change {
            up: Some(up),
            ..Change::of(FailureTarget::Link(link), at_ps)
        })
    }

    /// Makes one direction of a link fail (`up` is false) or be repaired at `at_ps`, or now if that is `None`. Only the
    /// receiving end notices the loss of signal. Fails if there is no such link, or the time is in the past.
    pub fn set_direction_state(
        &mut self,
        link: LinkId,
        direction: LinkDirection,
        up: bool,
        at_ps: Option<Time>,
    ) -> Result<(), NetError> {
        self.apply(&Change {
            up: Some(up),
            ..Change::of(FailureTarget::Direction(link, direction), at_ps)
        })
    }

    /// Makes a link, or one direction of it, lose all packets silently from `at_ps` on (now if that is `None`), or ends
    /// that (`silent` is false). The signal stays, so that loss of signal does not detect the failure. Fails if there
    /// is no such link, or the time is in the past.
    pub fn set_silent_loss(
        &mut self,
        link: LinkId,
        direction: Option<LinkDirection>,
        silent: bool,
        at_ps: Option<Time>,
    ) -> Result<(), NetError> {
        let target = match direction {
            None => FailureTarget::Link(link),
            Some(direction) => FailureTarget::Direction(link, direction),
        };
        self.apply(&Change {
            silent: Some(silent),
            ..Change::of(target, at_ps)
        })
    }

    /// Makes a node fail (`up` is false) or be repaired at `at_ps`, or now if that is `None`. While it is down, all its
    /// links are down, and it processes and sends nothing. Packets inside are lost; tables, registers and logs remain.
    /// Fails if there is no such node, or the time is in the past.
    pub fn set_node_state(
        &mut self,
        node: &str,
        up: bool,
        at_ps: Option<Time>,
    ) -> Result<(), NetError> {
        self.apply(&Change {
            up: Some(up),
            ..Change::of(FailureTarget::Node(node.to_owned()), at_ps)
        })
    }

    /// Makes a node, a link or a link direction fail and be repaired at random times. Fails if it already fails at
    /// random, a parameter is out of range, or the start is in the past.
    pub fn fail_randomly(&mut self, failures: &RandomFailures) -> Result<(), NetError> {
        self.check_not_past(failures.start_ps)?;
        let what = self.failing(&failures.target)?;
        let (process, first_ps) = self.failures.add(what, failures, self.medium.seed)?;
        if let Some(at_ps) = first_ps {
            let event = Event::RandomFailure { process };
            self.medium.scheduler.push(at_ps, event);
        }
        Ok(())
    }

    /// Returns the random failures and repairs that have happened, in the order of time.
    pub fn random_failures(&self) -> &[FailureRecord] {
        &self.failures.records
    }

    /// Returns true if both directions of a link work: they are enabled, and the nodes at both ends are up. Fails if
    /// there is no such link.
    pub fn link_is_up(&self, link: LinkId) -> Result<bool, NetError> {
        let [first, second] = self.both_directions(link)?;
        Ok(self.medium.links[first].up && self.medium.links[second].up)
    }

    fn both_directions(&self, link: LinkId) -> Result<[u32; 2], NetError> {
        let first = self.medium.links.number(link, LinkDirection::AToB)?;
        Ok([first, first + 1])
    }

    fn failing(&self, target: &FailureTarget) -> Result<(String, Failing), NetError> {
        Ok(match target {
            FailureTarget::Node(name) => (name.clone(), Failing::Node(self.node_id(name)?)),
            FailureTarget::Direction(link, direction) => {
                let direction = self.medium.links.number(*link, *direction)?;
                let what = self.medium.links[direction].name.to_string();
                (what, Failing::Directions([direction; 2]))
            }
            FailureTarget::Link(link) => {
                let directions = self.both_directions(*link)?;
                let what = self.medium.links[directions[0]].name.replace('>', "-");
                (what, Failing::Directions(directions))
            }
        })
    }

    fn at_or_now(&mut self, at_ps: Option<Time>, event: Event) -> Result<(), NetError> {
        match at_ps {
            None => self.dispatch(event),
            Some(at_ps) => {
                self.check_not_past(at_ps)?;
                self.medium.scheduler.push(at_ps, event);
            }
        }
        Ok(())
    }
}

/// Events.
impl Network {
    /// Handles the event of a random failure process: makes its target fail or be repaired, and schedules the next
    /// change.
    pub(super) fn random_failure(&mut self, process: u32) {
        let (change, up, next_ps) = self.failures.next_change(process, self.medium.now_ps());
        if let Some(at_ps) = next_ps {
            let event = Event::RandomFailure { process };
            self.medium.scheduler.push(at_ps, event);
        }
        match change {
            Failing::Directions(directions) => self.set_directions(directions, up),
            Failing::Node(node) => self.set_node_up(node, up),
        }
    }

    /// Applies a change to these link directions; a single direction is given twice.
    pub(super) fn change_directions(&mut self, directions: [u32; 2], change: &Change) {
        if let Some(up) = change.up {
            self.set_directions(directions, up);
        }
        let [first, second] = directions;
        self.change_parameters(first, change);
        if second != first {
            self.change_parameters(second, change);
        }
    }

    /// Changes rate, delay, loss or jitter of a link direction, and schedules the arrivals of waiting packets anew.
    fn change_parameters(&mut self, direction: u32, change: &Change) {
        if change.is_of_state() {
            return;
        }
        let Medium {
            links,
            scheduler,
            seed,
            ..
        } = &mut self.medium;
        let (now_ps, link) = (scheduler.now_ps, &mut links[direction]);
        let moved = match change.moves_arrivals() {
            true => link.waiting_to_arrive(now_ps),
            false => 0,
        };
        let withdrawn = scheduler.withdraw(direction, moved);
        let last_ps = scheduler.last_arrival_ps(direction, link.generation);
        let arrivals_ps = link.change(now_ps, change, last_ps, *seed);
        for ((generation, packet), at_ps) in withdrawn.into_iter().zip(arrivals_ps) {
            scheduler.push_arrival(at_ps, direction, generation, packet);
        }
        let (from, to) = (link.from, link.to);
        let delay_ps = link.constant_delay_ps().unwrap_or(0);
        self.visits.delay_changed(to.node, direction ^ 1, delay_ps);
        self.with_switch(from.node, |switch, own, medium| {
            if let (Some(traffic), Some(rate_bps)) = (&mut switch.traffic, change.rate_bps) {
                traffic.change_rate(now_ps, from.port, rate_bps);
                // The transmitter may be free at another time than the traffic manager knows.
                let event = Timer::PortReady { port: from.port }.event(own.id);
                medium.scheduler.push(now_ps, event);
            }
        });
    }

    /// Enables (`up` is true) or disables these link directions.
    pub(super) fn set_directions(&mut self, directions: [u32; 2], up: bool) {
        for direction in directions {
            self.medium.links[direction].enabled = up;
            self.refresh_direction(direction);
        }
    }

    /// Determines whether a link direction works, after its own state or that of a node at its ends has changed. If
    /// that changes, counts lost packets, informs observers, and schedules the detection.
    pub(super) fn refresh_direction(&mut self, direction: u32) {
        let link = &self.medium.links[direction];
        let (from, to) = (link.from, link.to);
        let up = link.enabled && self.node(from.node).state.up && self.node(to.node).state.up;
        let now_ps = self.now_ps();
        let Some(lost) = self.medium.links[direction].set_up(now_ps, up) else {
            return;
        };
        let own = &self.nodes[from.node.0 as usize];
        let changed = Observation::LinkChanged { up };
        self.medium.tell(&own.state, Some(from.port), changed);
        let reason = DropReason::LinkDown;
        (self.medium).tell_dropped(&own.state, Some(from.port), reason, lost);
        if own
            .get::<SwitchNode>()
            .is_some_and(|switch| switch.traffic.is_some())
        {
            // Packets that wait for a port that is down go the way of those that come.
            let event = Timer::PortReady { port: from.port }.event(from.node);
            self.medium.scheduler.push(now_ps, event);
        }
        self.signal_changed(direction);
    }

    pub(super) fn set_node_up(&mut self, node: NodeId, up: bool) {
        let Network { nodes, medium, .. } = self;
        let failing = &mut nodes[node.0 as usize];
        let (model, own) = (&mut failing.model, &mut failing.state);
        if own.up == up {
            return;
        }
        own.up = up;
        own.generation += u32::from(!up);
        medium.tell(own, None, Observation::NodeChanged { up });
        if up {
            model.repaired(own, medium);
        } else {
            model.failed(own, medium);
            medium.lose_held(own);
        }
        for away in own.ports.clone().into_iter().flatten() {
            self.refresh_direction(away);
            self.refresh_direction(away ^ 1);
            // A change on the link while the node was down, it has yet to notice.
            let towards = away ^ 1;
            let signal = self.medium.links[towards].up;
            if up && self.detection.is_unnoticed(towards, signal) {
                self.signal_changed(towards);
            }
            if up {
                self.restart_session(towards);
            }
        }
    }
}
