//! Packets in a switch with a traffic manager: the order of ingress, queues, transmitters and egress. `traffic_manager` has the queues and
//! describes the model.
//!
//! Every port is served to the end whenever something came or its transmitter became free, so while a transmitter is free nothing
//! waits for it. Packets that egress makes besides (clones, recirculated packets) come after those that were there.

use super::{SwitchNode, Timer};
use crate::medium::Medium;
use crate::node::NodeState;
use crate::observer::DropReason;
use crate::queue::QueueConfig;
use crate::scheduler::Event;
use crate::traffic_manager::recirculation::Recirculating;
use crate::traffic_manager::{
    Offered, PortPlan, Queueing, Taken, TrafficManager, Transmitter, Work,
};
use engine::{Emission, Enqueued, Output, Packet, Switch, Time};

impl SwitchNode {
    /// Adapts the switch to its program if that has changed: adds, replaces or removes the traffic manager, and reads
    /// the CPU port. Packets that wait for a former program are lost.
    pub(crate) fn refresh_queueing(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let now_ps = medium.now_ps();
        if self.queueing_is_decided() {
            return;
        }
        let Some(program) = self
            .pipeline
            .engine()
            .map(|engine| engine.program().clone())
        else {
            return;
        };
        self.queueing_of = Some(program.clone());
        self.cpu_port = self.pipeline.cpu_port();
        self.time_observed = engine::time_observed(&program);
        let wanted = match self.queueing {
            // Ports without a link have no queues.
            Queueing::Auto => {
                own.ports.iter().any(Option::is_some)
                    && (self.traffic_config.is_asked_for() || engine::cares_about_queues(&program))
            }
            Queueing::Link => false,
            Queueing::TrafficManager => true,
        };
        let config = self.traffic_config.clone();
        match (&mut self.traffic, wanted) {
            (None, false) => {}
            (None, true) => {
                let traffic = TrafficManager::new(config, program, now_ps);
                self.traffic = Some(Box::new(traffic));
            }
            (Some(traffic), true) => {
                traffic.program = program;
                let lost = traffic.lose_all(now_ps);
                medium.lose(own, lost);
            }
            (Some(_), false) => self.end_traffic_manager(own, medium),
        }
    }

    /// Decides again whether the switch needs a traffic manager, after its first link was connected (which makes two
    /// directions if it connects the switch to itself).
    pub(crate) fn linked(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let few = own.ports.iter().flatten().nth(2).is_none();
        if few && self.traffic.is_none() {
            self.queueing_of = None;
            self.refresh_queueing(own, medium);
        }
    }

    /// Removes the switch's traffic manager, if it has one, and counts its packets as lost. The links' own queues are
    /// used again.
    pub(crate) fn end_traffic_manager(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let Some(mut traffic) = self.traffic.take() else {
            return;
        };
        let lost = traffic.lose_all(medium.now_ps());
        medium.lose(own, lost);
        for direction in own.ports.iter().flatten() {
            medium.links[*direction].use_queue(true);
        }
    }

    /// Drops the packets in the switch's traffic manager after a failure, and counts them as lost.
    pub(super) fn lose_queues(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let now_ps = medium.now_ps();
        let lost = self.traffic.as_mut().map(|it| it.lose_all(now_ps));
        medium.lose(own, lost.unwrap_or(0));
    }

    /// Calls `run` with the switch's traffic manager, if there is one, and then does the work that `run` left: copies
    /// for queues, and packets for ingress.
    fn with_traffic(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        run: impl FnOnce(&mut Queued<'_>, &mut Work),
    ) {
        self.refresh_queueing(own, medium);
        let Some(mut traffic) = self.traffic.take() else {
            return;
        };
        let mut work = std::mem::take(&mut traffic.work);
        let mut queued = Queued {
            switch: self,
            traffic: &mut traffic,
            own,
            medium,
        };
        run(&mut queued, &mut work);
        queued.work_on(&mut work);
        traffic.work = work;
        self.traffic = Some(traffic);
        if self.has_deadlines {
            self.run_agent(own, medium);
        }
    }

    /// Runs a packet that has arrived through ingress. Its copies reach the traffic manager's queues after the switch's
    /// latency.
    pub(super) fn receive_queued(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u32,
        packet: Packet,
    ) {
        self.with_traffic(own, medium, |queued, work| {
            let now_ps = queued.medium.now_ps();
            let mut copies = std::mem::take(&mut queued.traffic.copies);
            if let Some(engine) = queued.engine() {
                engine.ingress(now_ps, port, packet, &mut copies);
            }
            queued.behind_ingress(&mut copies, work);
            queued.traffic.copies = copies;
        });
    }

    /// Puts a copy of a packet into its queue after the switch's latency, unless the switch has failed (`generation`)
    /// or was given another program (`epoch`) meanwhile; then counts it as lost.
    pub(super) fn enqueue_event(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        (generation, epoch): (u32, u32),
        copy: Enqueued,
    ) {
        self.refresh_queueing(own, medium);
        let traffic = self.traffic.as_ref();
        if own.generation != generation || traffic.is_none_or(|traffic| traffic.epoch != epoch) {
            return medium.lose(own, 1);
        }
        self.with_traffic(own, medium, |_, work| work.copies.push_back(copy));
    }

    /// Sends packets that wait for a port while the port's transmitter is free.
    pub(super) fn port_ready(&mut self, own: &mut NodeState, medium: &mut Medium, port: u32) {
        self.with_traffic(own, medium, |queued, work| queued.serve(port, work));
    }

    /// Runs the packet that has passed a recirculation port, if there is one, through ingress again, and waits for the
    /// next.
    pub(super) fn recirculation_ready(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u16,
    ) {
        self.with_traffic(own, medium, |queued, work| {
            let now_ps = queued.medium.now_ps();
            let Some((packet, next_ps)) = queued.traffic.recirculated(now_ps, port) else {
                return;
            };
            work.again.push_back(packet);
            if let Some(next_ps) = next_ps {
                queued.wait_for_recirculation(port, next_ps);
            }
        });
    }
}

/// A switch and its traffic manager, which is taken out of the switch while work is done.
struct Queued<'a> {
    switch: &'a mut SwitchNode,
    traffic: &'a mut TrafficManager,
    own: &'a mut NodeState,
    medium: &'a mut Medium,
}

impl Queued<'_> {
    fn engine(&mut self) -> Option<&mut Switch> {
        self.switch.pipeline.engine_mut()
    }

    /// Makes the copies that came out of ingress reach their queues after the switch's latency.
    fn behind_ingress(&mut self, copies: &mut Vec<Enqueued>, work: &mut Work) {
        let latency_ps = self.switch.latency_ps;
        if latency_ps == 0 {
            return work.copies.extend(copies.drain(..));
        }
        let at_ps = self.medium.now_ps().saturating_add(latency_ps);
        for copy in copies.drain(..) {
            let event = Event::Enqueue {
                node: self.own.id,
                generation: self.own.generation,
                epoch: self.traffic.epoch,
                copy: Box::new(copy),
            };
            self.medium.scheduler.push(at_ps, event);
        }
    }

    fn work_on(&mut self, work: &mut Work) {
        loop {
            while let Some(copy) = work.copies.pop_front() {
                let port = copy.port;
                self.enqueue(copy);
                self.serve(port, work);
            }
            let Some(packet) = work.again.pop_front() else {
                return;
            };
            let now_ps = self.medium.now_ps();
            let mut copies = std::mem::take(&mut self.traffic.copies);
            if let Some(engine) = self.engine() {
                engine.recirculate(now_ps, packet, &mut copies);
            }
            self.behind_ingress(&mut copies, work);
            self.traffic.copies = copies;
        }
    }

    /// Puts a copy of a packet into the queue of its port, which is created if necessary; drops and counts the copy if
    /// the queue does not take it.
    fn enqueue(&mut self, copy: Enqueued) {
        let port = copy.port;
        let transmitter = self.transmitter(port);
        if !self.traffic.has_port(port, transmitter.direction) {
            let plan = self.port_plan(port, transmitter.direction);
            self.traffic.add_port(port, &plan);
        }
        let now_ps = self.medium.now_ps();
        if let Offered::Dropped(copy, reason) = self.traffic.offer(now_ps, transmitter, copy) {
            self.own.counters.queue_drops += 1;
            self.medium.tell_dropped(self.own, Some(port), reason, 1);
            let packet = self.engine().map(|engine| engine.discard(copy));
            packet
                .into_iter()
                .for_each(|p| self.medium.pool.take_back(p));
        }
    }

    fn transmitter(&self, port: u32) -> Transmitter {
        let direction = self.own.direction_from(port);
        let link = direction.map(|direction| &self.medium.links[direction]);
        Transmitter {
            direction,
            busy_until_ps: link.map_or(Time::ZERO, |link| link.busy_until_ps()),
        }
    }

    /// Returns the properties of a port's queues, from the port's link (`direction`) if it has one. Disables the link's
    /// own queue.
    fn port_plan(&mut self, port: u32, direction: Option<u32>) -> PortPlan {
        let (mut queue, mut rate_bps) = (QueueConfig::packets(u64::MAX), 1);
        let mut name = format!("{}:{port}", self.own.name);
        if let Some(direction) = direction {
            let link = &mut self.medium.links[direction];
            name = link.name.to_string();
            link.use_queue(false);
            (queue, rate_bps) = (link.config().queue, link.config().rate_bps);
        }
        PortPlan {
            direction,
            queue,
            rate_bps,
            seed: self.medium.seed,
            name,
        }
    }

    /// Sends packets that wait for a port as long as the port's transmitter is free, and schedules an event for the
    /// time at which it becomes free again.
    fn serve(&mut self, port: u32, work: &mut Work) {
        let now_ps = self.medium.now_ps();
        self.traffic.woken(now_ps, port);
        loop {
            let free_ps = self.transmitter(port).busy_until_ps;
            if free_ps > now_ps {
                if self.traffic.wake(port, free_ps) {
                    let event = Timer::PortReady { port }.event(self.own.id);
                    self.medium.scheduler.push(free_ps, event);
                }
                return;
            }
            let Some(taken) = self.traffic.take(now_ps, port) else {
                return;
            };
            self.send_taken(port, taken, work);
        }
    }

    /// Runs a packet that was taken from a port's queue through egress, and sends the output. Sets its congestion mark
    /// if the queue demanded that.
    fn send_taken(&mut self, port: u32, taken: Taken, work: &mut Work) {
        let (now_ps, generation) = (self.medium.now_ps(), self.own.generation);
        let mut emissions = std::mem::take(&mut self.traffic.emissions);
        if let Some(engine) = self.engine() {
            engine.egress(now_ps, taken.waiting.copy, taken.deq_qdepth, &mut emissions);
        }
        for emission in emissions.drain(..) {
            match emission {
                Emission::Output(mut output) => {
                    if taken.waiting.mark {
                        wire::ecn::mark(output.packet.stored_mut());
                    }
                    let Output {
                        port: to, packet, ..
                    } = output;
                    (self.switch).depart(self.own, self.medium, generation, to, packet);
                    let sent_ps = self.transmitter(port).busy_until_ps;
                    self.traffic.sent(port, taken.queue, sent_ps);
                }
                other => self.emitted(other, work),
            }
        }
        self.traffic.emissions = emissions;
    }

    /// Handles a clone or a recirculated packet that egress made: puts it into a queue, runs it through ingress again,
    /// sends it through a recirculation port, or drops and counts it.
    fn emitted(&mut self, emission: Emission, work: &mut Work) {
        let now_ps = self.medium.now_ps();
        if !self.traffic.may_work(now_ps) {
            if let Some(engine) = self.engine() {
                engine.count_dropped(engine::DropReason::RecirculationLimit);
            }
            return;
        }
        match emission {
            Emission::Output(_) => {}
            Emission::Enqueued(copy) => work.copies.push_back(copy),
            Emission::Recirculated(packet) => match self.traffic.recirculate(now_ps, packet) {
                Recirculating::Through(packet) => work.again.push_back(packet),
                Recirculating::Waits => {}
                Recirculating::ThereAt { port, there_ps } => {
                    self.wait_for_recirculation(port, there_ps);
                }
                Recirculating::Dropped => {
                    self.own.counters.queue_drops += 1;
                    self.medium
                        .tell_dropped(self.own, None, DropReason::QueueFull, 1);
                }
            },
        }
    }

    fn wait_for_recirculation(&mut self, port: u16, there_ps: Time) {
        let event = Timer::RecirculationReady { port }.event(self.own.id);
        self.medium.scheduler.push(there_ps, event);
    }
}
