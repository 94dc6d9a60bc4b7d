//! A network: its parts, their construction and their results. `network::step` handles its events; each of the files beside that has one
//! concern: traffic, failures, detection, control of switches, interfaces of the machine, visits.

mod control;
mod detect;
mod failures;
mod interfaces;
mod step;
mod traffic;
mod visit;

use crate::capture::{Capture, Crossings};
use crate::detection::Detection;
use crate::error::{NetError, out_of_range};
use crate::failure::Failures;
use crate::generator::Generator;
use crate::host::{Host, HostSettings};
use crate::interface::Interfaces;
use crate::link::{Attachment, Direction, LinkConfig, LinkCounters, LinkDirection};
use crate::medium::Medium;
use crate::model::{Node, NodeModel};
use crate::node::{MAX_PORT, NodeCounters, NodeState};
use crate::observer::{Observer, ObserverId, Scope};
use crate::ordering::OrderingCounters;
use crate::random::named_seed;
use crate::serialisation::MAX_DELAY_PS;
use crate::subnets::Subnets;
use crate::switch::{Pipeline, SwitchNode};
use crate::trace_log::TraceLog;
use crate::traffic::Traffic;
use crate::{LinkId, NodeId, description};
use engine::{Switch, Time};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
pub use traffic::Join;
use visit::Visits;

/// Nodes and links, and the events among them.
///
/// Nodes are named; a port is a number at its node. Requests that make no sense are refused with a [`NetError`] and change
/// nothing.
#[derive(Debug)]
pub struct Network {
    nodes: Vec<Node>,
    by_name: BTreeMap<String, NodeId>,
    pub(crate) medium: Medium,
    traffic: Traffic,
    generators: Vec<Generator>,
    failures: Failures,
    detection: Detection,
    pub(crate) interfaces: Interfaces,
    visits: Visits,
    subnets: Subnets,
    /// The most copies of copied packets that each switch makes per second in real time.
    copies_per_s: u64,
}

/// Building the network.
impl Network {
    /// Creates an empty network at time zero, whose random numbers follow from `seed`. Switches notice a change of a
    /// port's state after `detection_delay_ps` picoseconds.
    pub fn new(seed: u64, detection_delay_ps: u64) -> Network {
        Network::begin_at(Time::ZERO, seed, detection_delay_ps)
    }

    /// Creates an empty network whose clock begins at `now_ps`, and whose random numbers follow from `seed`. Switches
    /// notice a change of a port's state after `detection_delay_ps` picoseconds.
    pub fn begin_at(now_ps: Time, seed: u64, detection_delay_ps: u64) -> Network {
        let mut medium = Medium::new(seed);
        medium.scheduler.now_ps = now_ps;
        Network {
            nodes: Vec::new(),
            by_name: BTreeMap::new(),
            medium,
            traffic: Traffic::default(),
            generators: Vec::new(),
            failures: Failures::default(),
            detection: Detection::new(seed, detection_delay_ps),
            interfaces: Interfaces::default(),
            visits: Visits::default(),
            subnets: Subnets::default(),
            copies_per_s: engine::COPIES_PER_S,
        }
    }

    /// Returns the seed for the random numbers of the component called `name`, such as a switch. It depends on the
    /// network's seed and the name alone.
    pub fn seed_of(&self, name: &str) -> u64 {
        named_seed(self.medium.seed, name)
    }

    fn add_node(&mut self, name: &str, model: Box<dyn NodeModel>) -> Result<NodeId, NetError> {
        if name.is_empty() {
            return Err(out_of_range("name", "not empty"));
        }
        if self.by_name.contains_key(name) {
            return Err(NetError::DuplicateNode(name.to_owned()));
        }
        let id = NodeId(self.nodes.len() as u32);
        let state = NodeState::new(id, name);
        self.nodes.push(Node { model, state });
        self.by_name.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Adds a switch, and returns its node. Packets leave it `latency_ps` picoseconds after they arrived. Fails if a
    /// node with this name exists.
    pub fn add_switch(
        &mut self,
        name: &str,
        switch: Box<Switch>,
        latency_ps: u64,
    ) -> Result<NodeId, NetError> {
        self.add_pipeline(name, switch, latency_ps)
    }

    /// Adds a switch with the latency, queues and processor that a topology's description gives, and returns its node.
    /// Fails if a node with this name exists, or a parameter is out of range.
    pub fn add_described_switch(
        &mut self,
        name: &str,
        switch: Box<Switch>,
        described: &description::Switch,
    ) -> Result<NodeId, NetError> {
        // What is refused changes nothing.
        let queueing = described.queueing();
        if let Some((_, config)) = &queueing {
            config.check()?;
        }
        if let Some(processor) = &described.processor {
            processor.check()?;
        }
        let id = self.add_switch(name, switch, described.latency_ps())?;
        if let Some((queueing, config)) = queueing {
            self.set_queueing(name, queueing, config)?;
        }
        if let Some(processor) = described.processor {
            self.add_processor(name, processor)?;
        }
        Ok(id)
    }

    pub(crate) fn add_pipeline(
        &mut self,
        name: &str,
        pipeline: Box<dyn Pipeline>,
        latency_ps: u64,
    ) -> Result<NodeId, NetError> {
        if latency_ps > MAX_DELAY_PS {
            return Err(out_of_range(
                "latency_ps",
                format!("at most {MAX_DELAY_PS}"),
            ));
        }
        let switch = SwitchNode::new(pipeline, latency_ps);
        let id = self.add_node(name, Box::new(switch))?;
        self.with_switch(id, |switch, own, medium| {
            switch.refresh_queueing(own, medium);
        });
        self.limit_copies(id);
        Ok(id)
    }

    /// Adds a modelled host with a port for each of its network cards, and returns its node. Fails if a node with this
    /// name exists, a prefix is too long, an address is not unicast, or there is no such VLAN.
    pub fn add_host(
        &mut self,
        name: &str,
        settings: impl Into<HostSettings>,
    ) -> Result<NodeId, NetError> {
        let host = Host::new(settings.into());
        host.check()?;
        let addresses = host.addresses();
        let id = self.add_node(name, Box::new(host))?;
        let near = self.subnets.add(id, &addresses);
        if !near.is_empty() {
            self.make_resolve(id);
        }
        for other in near {
            self.make_resolve(other);
        }
        if self.traffic.has_memberships {
            self.begin_memberships(id);
        }
        Ok(id)
    }

    /// Makes a host find its neighbours' MAC addresses by ARP and neighbour discovery from now on.
    fn make_resolve(&mut self, host: NodeId) {
        if let Some((host, _)) = self.node_mut(host).get_mut::<Host>() {
            host.resolves = true;
        }
        self.visits.network_changed();
    }

    /// Adds a link between two ports, with the same configuration in both directions, and returns its id. Fails if a
    /// node is unknown, a port cannot be used, a parameter is out of range, or BFD is configured for an end that is no
    /// switch.
    pub fn add_link(
        &mut self,
        a: &str,
        a_port: u32,
        b: &str,
        b_port: u32,
        config: LinkConfig,
    ) -> Result<LinkId, NetError> {
        config.check()?;
        let a_end = Attachment {
            node: self.node_id(a)?,
            port: a_port,
        };
        let b_end = Attachment {
            node: self.node_id(b)?,
            port: b_port,
        };
        for end in [a_end, b_end] {
            let node = self.node(end.node);
            node.check_free(end.port)?;
            if config.detection.bfd.is_some() && !node.is::<SwitchNode>() {
                let reason = "BFD is between switches";
                return Err(node.invalid_port(end.port, reason));
            }
        }
        if a_end == b_end {
            return Err(NetError::InvalidPort {
                node: a.to_owned(),
                port: a_port,
                reason: "a link has two ends",
            });
        }
        let first = self.medium.links.len() as u32;
        for (from, to, name) in [
            (a_end, b_end, format!("{a}:{a_port}>{b}:{b_port}")),
            (b_end, a_end, format!("{b}:{b_port}>{a}:{a_port}")),
        ] {
            let direction = self.medium.links.len() as u32;
            self.node_mut(from.node).state.attach(from.port, direction);
            let fresh = Direction::new(from, to, config.clone(), self.medium.seed, &name);
            self.medium.links.push(fresh);
            self.detection.add(&config.detection);
        }
        self.begin_sessions(first);
        self.visits.network_changed();
        for direction in [first, first + 1] {
            self.refresh_direction(direction);
        }
        for end in [a_end, b_end] {
            self.with_switch(end.node, |switch, own, medium| {
                switch.set_port_up(end.port, true);
                switch.linked(own, medium);
            });
        }
        Ok(LinkId(first / 2))
    }

    /// Adds a link as a topology describes it, and returns its id. Fails like [`Network::add_link`].
    pub fn connect(&mut self, link: &description::Link) -> Result<LinkId, NetError> {
        let (config, reverse) = link.configs();
        let id = self.add_link(&link.a, link.a_port, &link.b, link.b_port, config)?;
        if let Some(reverse) = reverse {
            self.configure_direction(id, LinkDirection::BToA, reverse)?;
        }
        Ok(id)
    }

    /// Replaces the configuration of one direction of a link. Fails if there is no such link, a parameter is out of
    /// range, the direction has already been offered a packet, is down or is used by a traffic manager, or only one
    /// direction would have BFD.
    pub fn configure_direction(
        &mut self,
        link: LinkId,
        direction: LinkDirection,
        config: LinkConfig,
    ) -> Result<(), NetError> {
        config.check()?;
        let number = self.medium.links.number(link, direction)?;
        let former = &self.medium.links[number];
        if !former.is_unused() || !former.up || !former.enabled {
            let when = "before its first packet or failure";
            return Err(out_of_range("the time to configure a direction", when));
        }
        if !self.detection.configure(number, &config.detection) {
            let expected = "there in both directions or in none";
            return Err(out_of_range("bfd", expected));
        }
        let former = &self.medium.links[number];
        let mut fresh = Direction::new(
            former.from,
            former.to,
            config,
            self.medium.seed,
            &former.name,
        );
        fresh.epoch = former.epoch;
        fresh.generation = former.generation;
        self.medium.links[number] = fresh;
        self.begin_sessions(number & !1);
        self.visits.network_changed();
        Ok(())
    }
}

/// Observing packets and failures.
impl Network {
    /// Subscribes an observer to what happens in its scope from now on, and returns the number of the subscription.
    pub fn observe(&mut self, scope: Scope, observer: Box<dyn Observer>) -> ObserverId {
        self.medium.observers.subscribe(scope, observer)
    }

    /// Ends a subscription, and returns its observer; `None` if it had already ended.
    pub fn end_observation(&mut self, id: ObserverId) -> Option<Box<dyn Observer>> {
        self.medium.observers.unsubscribe(id)
    }

    /// Returns the observer of a subscription, if that has not ended and the observer is of type `T`; else `None`.
    pub fn observer<T: Observer>(&self, id: ObserverId) -> Option<&T> {
        self.medium.observers.get(id)
    }

    /// Captures the packets that cross a port from now on, in both directions, and writes them to `out` in the pcap
    /// format with nanoseconds. At the CPU port of a switch, these are packet-ins and packet-outs. A port may have
    /// several captures. Fails if there is no such node or port, or `out` fails.
    pub fn capture(
        &mut self,
        node: &str,
        port: u32,
        out: Box<dyn Write + Send>,
    ) -> Result<(), NetError> {
        self.capture_some(node, port, Crossings::Both, out)
    }

    /// Captures the packets that cross a port from now on like [`Network::capture`], but only those of `crossings`.
    /// Fails if there is no such node or port, or if the capture's header cannot be written.
    pub fn capture_some(
        &mut self,
        node: &str,
        port: u32,
        crossings: Crossings,
        out: Box<dyn Write + Send>,
    ) -> Result<(), NetError> {
        let id = self.node_id(node)?;
        let node_of = self.node(id);
        let is_none = match node_of.is::<SwitchNode>() {
            true => port > MAX_PORT,
            false => node_of.model.refuses_port(port).is_some(),
        };
        if is_none {
            return Err(NetError::InvalidPort {
                node: node.to_owned(),
                port,
                reason: "the node has no such port",
            });
        }
        let what = format!("capture of {node}, port {port}");
        let capture = Capture::new(what, crossings, out).map_err(NetError::Io)?;
        self.observe(Scope::Port(id, port), Box::new(capture));
        Ok(())
    }

    /// Captures packets like [`Network::capture_some`] into a file, and replaces an existing file. Fails if the file
    /// cannot be created.
    pub fn capture_to_path(
        &mut self,
        node: &str,
        port: u32,
        crossings: Crossings,
        path: &Path,
    ) -> Result<(), NetError> {
        self.node_id(node)?;
        let file = std::fs::File::create(path)
            .map_err(|error| NetError::Io(format!("{}: {error}", path.display())))?;
        self.capture_some(
            node,
            port,
            crossings,
            Box::new(std::io::BufWriter::new(file)),
        )
    }

    /// Writes what happens to the packets of a switch from now on to `out`, as text: at most `most_per_s` packets per
    /// second, and the number of the others. A packet that is shown runs on the interpreter, with the switch's tables
    /// and state; `dump_bytes` is the number of its bytes that are shown, on arrival and on departure. Packets that
    /// wait in the switch (behind a processor, or in a traffic manager) are not shown. Fails if there is no such
    /// switch, or it already has a log.
    pub fn log_packets(
        &mut self,
        switch: &str,
        most_per_s: u32,
        dump_bytes: usize,
        out: Box<dyn Write + Send>,
    ) -> Result<(), NetError> {
        self.switch(switch)?;
        let id = self.node_id(switch)?;
        let begun = self.with_switch(id, |node, _, _| node.log_packets(most_per_s));
        if begun != Some(true) {
            return Err(NetError::Refused(format!("{switch} has a log already")));
        }
        let log = TraceLog::new(format!("log of {switch}"), dump_bytes, out);
        self.observe(Scope::Node(id), Box::new(log));
        Ok(())
    }

    /// Flushes captures to disk, and the buffers of other observers, as also happens at the end of runs. Fails with the
    /// first failure of an observer that has not been reported yet. The network continues without a failed capture.
    pub fn flush_captures(&mut self) -> Result<(), NetError> {
        self.medium.observers.flush();
        match self.medium.observers.take_failure() {
            Some(failure) => Err(NetError::Io(failure)),
            None => Ok(()),
        }
    }
}

/// Reading the network's state.
impl Network {
    /// Returns the network's present time.
    pub fn now_ps(&self) -> Time {
        self.medium.now_ps()
    }

    /// Returns the number of events that have happened since the network was created.
    pub fn steps(&self) -> u64 {
        self.medium.scheduler.steps
    }

    /// Returns the number of scheduled events. A network without any stays as it is until a caller changes it.
    pub fn pending_events(&self) -> usize {
        self.medium.scheduler.len()
    }

    /// Returns the present configurations of both directions of a link, with all changes, from a to b first. Fails if
    /// there is no such link.
    pub fn link_configs(&self, link: LinkId) -> Result<[&LinkConfig; 2], NetError> {
        let first = self.medium.links.number(link, LinkDirection::AToB)?;
        Ok([first, first + 1].map(|direction| self.medium.links[direction].config()))
    }

    /// Returns the counters of both directions of a link at the present time. Fails if there is no such link.
    pub fn link_counters(&self, link: LinkId) -> Result<LinkCounters, NetError> {
        self.medium.links.counters(link, self.now_ps())
    }

    /// Returns the counters of the ordering function of one direction of a link; `None` if it has none. Fails if there
    /// is no such link.
    pub fn ordering_counters(
        &self,
        link: LinkId,
        direction: LinkDirection,
    ) -> Result<Option<OrderingCounters>, NetError> {
        let direction = self.medium.links.number(link, direction)?;
        let ordering = self.medium.links[direction].ordering();
        Ok(ordering.map(|ordering| ordering.counters()))
    }

    /// Returns the counters of a node. Fails if there is no node with this name.
    pub fn node_counters(&self, node: &str) -> Result<NodeCounters, NetError> {
        Ok(self.node(self.node_id(node)?).state.counters)
    }

    /// Returns the id of the node with this name. Fails if there is none.
    pub fn node_id(&self, name: &str) -> Result<NodeId, NetError> {
        self.by_name
            .get(name)
            .copied()
            .ok_or_else(|| NetError::UnknownNode(name.to_owned()))
    }

    /// Returns the name of a node, which must exist.
    pub fn node_name(&self, id: NodeId) -> &str {
        &self.node(id).state.name
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    pub(crate) fn check_not_past(&self, at_ps: Time) -> Result<(), NetError> {
        let now_ps = self.now_ps();
        if at_ps < now_ps {
            return Err(NetError::TimeInPast { at_ps, now_ps });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
