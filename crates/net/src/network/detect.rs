//! Ports that go down and come up: the input of the detectors of [`crate::detection`], and the consequences of their findings.

use super::Network;
use crate::NodeId;
use crate::detection::bfd::BfdStatistics;
use crate::detection::encapsulation::{control_packet, frame};
use crate::error::NetError;
use crate::notification::NotificationEvent;
use crate::observer::{DropReason, Observation};
use crate::scheduler::Event;
use crate::switch::SwitchNode;
use engine::{Packet, Time};
use wire::bfd::Header;

impl Network {
    /// Declares a port of a switch to be down whatever its signal says (`down` is true), or withdraws that. For callers
    /// that detect failures in another way, such as a controller or a program with digests. Fails if there is no such
    /// switch, or the port has no link.
    pub fn declare_port(&mut self, switch: &str, port: u32, down: bool) -> Result<(), NetError> {
        let (node, _) = self.switch_node(switch)?;
        let away = self.node(node).state.direction_from(port);
        let Some(away) = away else {
            return Err(NetError::InvalidPort {
                node: switch.to_owned(),
                port,
                reason: "it has no link",
            });
        };
        self.detection.port(away ^ 1).declared_down = down;
        self.refresh_port(away ^ 1);
        Ok(())
    }

    /// Returns true if a port has a signal: its link works towards the port, or the port is an interface of the machine
    /// that is up. Fails if there is no such node.
    pub fn port_is_up(&self, node: &str, port: u32) -> Result<bool, NetError> {
        let state = &self.node(self.node_id(node)?).state;
        if let Some(number) = state.external_at(port) {
            return Ok(self.interfaces.is_up(number));
        }
        let towards = state.direction_from(port).map(|away| away ^ 1);
        Ok(towards.is_some_and(|direction| self.medium.links[direction].up))
    }

    /// Schedules the time at which the switch at the receiving end of a link direction notices the direction's present
    /// signal, after the detection delay. Does nothing if that end is no switch.
    pub(super) fn signal_changed(&mut self, direction: u32) {
        let link = &self.medium.links[direction];
        if !self.node(link.to.node).is::<SwitchNode>() {
            return;
        }
        let (epoch, up) = (link.epoch, link.up);
        let delay_ps = self.detection.signal_delay_ps(direction, up);
        let noticed_ps = self.now_ps().saturating_add(delay_ps);
        let event = Event::Detect { direction, epoch };
        self.medium.scheduler.push(noticed_ps, event);
    }

    /// Makes the receiving end of a link direction notice the signal, unless the signal has changed again (which
    /// `epoch` shows) or the node is down.
    pub(super) fn detect_signal(&mut self, direction: u32, epoch: u32) {
        let link = &self.medium.links[direction];
        if link.epoch == epoch && self.node(link.to.node).state.up {
            self.detection.port(direction).signal = link.up;
            self.refresh_port(direction);
        }
    }

    /// Starts the BFD sessions of the link whose first direction is `first`, if BFD is configured.
    pub(super) fn begin_sessions(&mut self, first: u32) {
        let now_ps = self.now_ps();
        let links = &self.medium.links;
        let names = [first, first + 1].map(|direction| (direction, &*links[direction].name));
        self.detection.establish(now_ps, self.medium.seed, names);
        for direction in [first, first + 1] {
            self.schedule_session(direction);
        }
    }

    /// Draws new discriminators for all BFD sessions, including later ones, from the random stream of `seed`.
    pub(crate) fn redraw_discriminators(&mut self, seed: u64) {
        self.detection.redraw(seed);
    }

    /// Restarts the BFD session at the receiving end of a link direction, if there is one, after the switch at that end
    /// was repaired.
    pub(super) fn restart_session(&mut self, direction: u32) {
        let now_ps = self.now_ps();
        if let Some(session) = &mut self.detection.port(direction).session {
            session.restart(now_ps);
            self.schedule_session(direction);
            self.refresh_port(direction);
        }
    }

    fn schedule_session(&mut self, direction: u32) {
        if let Some(session) = &mut self.detection.port(direction).session {
            let due_ps = session.due_ps();
            if due_ps != Time::NEVER && session.wake_ps.is_none_or(|wake_ps| due_ps < wake_ps) {
                session.wake_ps = Some(due_ps);
                let event = Event::Session { direction };
                self.medium.scheduler.push(due_ps, event);
            }
        }
    }

    /// Handles the timer of the BFD session at the receiving end of a link direction: the session sends a packet, or
    /// notices that its detection time is over. The session of a switch that is down waits until the switch is
    /// repaired.
    pub(super) fn session_due(&mut self, direction: u32) {
        let now_ps = self.now_ps();
        let up = self.node(self.medium.links[direction].to.node).state.up;
        let Some(session) = &mut self.detection.port(direction).session else {
            return;
        };
        // An event that another one, earlier, took the place of says nothing.
        if session.wake_ps.is_none_or(|wake_ps| wake_ps > now_ps) {
            return;
        }
        session.wake_ps = None;
        if up {
            let hello = session.on_time(now_ps);
            self.session_went_on(direction, hello);
        }
    }

    /// Passes a packet to the BFD session at the receiving end of a link direction if it is a BFD control packet, and
    /// counts it. Returns true if it is one.
    pub(super) fn receive_hello(&mut self, direction: u32, packet: &Packet) -> bool {
        let Some(hello) = control_packet(&packet.bytes()) else {
            return false;
        };
        let now_ps = self.now_ps();
        let to = self.medium.links[direction].to;
        let own = &mut self.nodes[to.node.0 as usize].state;
        if !self.medium.takes_packet(own, to.port, packet) {
            return true;
        }
        let Ok(hello) = hello else {
            own.counters.corrupted += 1;
            let reason = DropReason::Corrupted;
            self.medium.tell_dropped(own, Some(to.port), reason, 1);
            return true;
        };
        own.counters.accepted += 1;
        if let Some(session) = &mut self.detection.port(direction).session {
            let answer = session.receive(now_ps, &hello);
            self.session_went_on(direction, answer);
        }
        true
    }

    /// Schedules the next event of a BFD session that may have changed, sends its packet `hello`, if there is one, in
    /// the opposite direction, and reports to the switch if the state of the port has changed.
    fn session_went_on(&mut self, direction: u32, hello: Option<Header>) {
        self.schedule_session(direction);
        if let Some(Ok(packet)) = hello.map(|hello| frame(&hello, direction ^ 1)) {
            let at = self.medium.links[direction].to;
            let own = &mut self.nodes[at.node.0 as usize].state;
            self.medium.transmit(own, at.port, packet);
        }
        self.refresh_port(direction);
    }

    /// Returns the statistics of the BFD session at a switch's port; `None` if the port has no session. Fails if there
    /// is no such switch.
    pub fn bfd_statistics(
        &self,
        switch: &str,
        port: u32,
    ) -> Result<Option<BfdStatistics>, NetError> {
        let (node, _) = self.switch_node(switch)?;
        let away = self.node(node).state.direction_from(port);
        let session = away.and_then(|away| self.detection.session(away ^ 1));
        Ok(session.map(|session| session.statistics()))
    }

    /// Reports the state of the port at the receiving end of a link direction to its switch, if the detectors have
    /// changed it.
    fn refresh_port(&mut self, direction: u32) {
        if let Some(up) = self.detection.port(direction).news() {
            let to = self.medium.links[direction].to;
            self.port_changed(to.node, to.port, up);
        }
    }

    /// Reports to a switch that a port has gone down or come up: first to its program, then to packet generators that
    /// wait for that, then to its controller. A switch that is down reports nothing to the latter two. Does nothing if
    /// the node is no switch.
    pub(super) fn port_changed(&mut self, node: NodeId, port: u32, up: bool) {
        let noticed = self.with_switch(node, |switch, own, medium| {
            switch.set_port_up(port, up);
            medium.tell(own, Some(port), Observation::PortChanged { up });
            own.up
        });
        if noticed != Some(true) {
            return;
        }
        self.generate_for_port(node, port, up);
        let own = &self.nodes[node.0 as usize].state;
        self.medium
            .notify(own, NotificationEvent::PortChange { port, up });
    }
}
