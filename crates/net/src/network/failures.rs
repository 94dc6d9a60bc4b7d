//! Failures and repairs of a network's links and nodes, at given or random times. `detect` informs the switches.

use super::Network;
use crate::LinkId;
use crate::NodeId;
use crate::error::{NetError, out_of_range};
use crate::failure::{Change, Failing, FailureRecord, FailureTarget, RandomFailures};
use crate::link::LinkDirection;
use crate::observer::{DropReason, Observation};
use crate::scheduler::Event;
use crate::switch::{SwitchNode, Timer};
use engine::Time;

/// Asking for failures.
impl Network {
    /// Makes a change at its time. Fails if there is no such link or node, the time has passed, or a node is to lose
    /// packets silently.
    pub fn apply(&mut self, change: &Change) -> Result<(), NetError> {
        let (target, at_ps) = (&change.target, change.at_ps);
        if let Some(up) = change.up {
            match target {
                FailureTarget::Link(link) => self.set_link_state(*link, up, at_ps)?,
                FailureTarget::Direction(link, direction) => {
                    self.set_direction_state(*link, *direction, up, at_ps)?;
                }
                FailureTarget::Node(node) => self.set_node_state(node, up, at_ps)?,
            }
        }
        let Some(silent) = change.silent else {
            return Ok(());
        };
        match target {
            FailureTarget::Link(link) => self.set_silent_loss(*link, None, silent, at_ps),
            FailureTarget::Direction(link, direction) => {
                self.set_silent_loss(*link, Some(*direction), silent, at_ps)
            }
            FailureTarget::Node(_) => Err(out_of_range("silent", "of a link")),
        }
    }

    /// Fails or repairs both directions of a link at `at_ps`, or now if that is `None`. Packets that wait or are under
    /// way on a failing link are lost.
    pub fn set_link_state(
        &mut self,
        link: LinkId,
        up: bool,
        at_ps: Option<Time>,
    ) -> Result<(), NetError> {
        let directions = self.both_directions(link)?;
        self.at_or_now(at_ps, Event::DirectionState { directions, up })
    }

    /// Fails or repairs one direction of a link at `at_ps`, or now if that is `None`. Only the receiving end notices
    /// the loss of signal.
    pub fn set_direction_state(
        &mut self,
        link: LinkId,
        direction: LinkDirection,
        up: bool,
        at_ps: Option<Time>,
    ) -> Result<(), NetError> {
        let directions = [self.medium.links.number(link, direction)?; 2];
        self.at_or_now(at_ps, Event::DirectionState { directions, up })
    }

    /// Makes a link, or one direction of it, lose all packets silently at `at_ps`, or now if that is `None`; or ends
    /// that. The signal stays, so that loss of signal does not detect the failure.
    pub fn set_silent_loss(
        &mut self,
        link: LinkId,
        direction: Option<LinkDirection>,
        silent: bool,
        at_ps: Option<Time>,
    ) -> Result<(), NetError> {
        let directions = match direction {
            None => self.both_directions(link)?,
            Some(direction) => [self.medium.links.number(link, direction)?; 2],
        };
        self.at_or_now(at_ps, Event::DirectionSilent { directions, silent })
    }

    /// Fails or repairs a node at `at_ps`, or now if that is `None`. While it is down, all its links are down, and it
    /// processes and sends nothing. Packets inside are lost; tables, registers and logs are not.
    pub fn set_node_state(
        &mut self,
        node: &str,
        up: bool,
        at_ps: Option<Time>,
    ) -> Result<(), NetError> {
        let node = self.node_id(node)?;
        self.at_or_now(at_ps, Event::NodeState { node, up })
    }

    /// Makes a node, a link or a direction of a link fail and be repaired at random times. Fails if something is
    /// already set to fail at random.
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

    /// Returns the random failures and repairs that have happened, in order.
    pub fn random_failures(&self) -> &[FailureRecord] {
        &self.failures.records
    }

    /// Returns whether both directions of a link work: the link is enabled, and the nodes at both its ends are up.
    /// Fails if there is no such link.
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
    /// Fails or repairs the thing that belongs to a random process, and schedules its next change.
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

    /// Enables or disables these directions of a link.
    pub(super) fn set_directions(&mut self, directions: [u32; 2], up: bool) {
        for direction in directions {
            self.medium.links[direction].enabled = up;
            self.refresh_direction(direction);
        }
    }

    /// Computes again whether a direction works, after something on which it depends changed.
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
