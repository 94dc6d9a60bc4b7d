//! Runs a script on one switch.
//!
//! Control commands take effect at once, and packets run to their end at once. When the script is over, the output of each port is compared with
//! the expected packets: their number and their order. Time is virtual: a packet
//! takes a microsecond and `wait` a second.

use crate::resolve::{self, Resolved};
use crate::script::{
    Cell, Command, Comparison, CounterCheck, Number, PacketPattern, Pattern, Rate, Script,
};
use engine::control::{
    CloneSession, Entity, Entry, EntryAction, MulticastGroup, Operation, Replica, Target, Update,
};
use engine::meter::MeterConfig;
use engine::runtime::CounterData;
use engine::{Executor, Packet, Switch, SwitchConfig, Time};
use ir::{ActionCall, ActionProfileId, CounterId, KeyMatch, MeterId, Program, RegisterId, TableId};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

/// The virtual time in picoseconds that each packet takes.
const PACKET_PS: u64 = 1_000_000;

/// The virtual time in picoseconds that `wait` takes.
const WAIT_PS: u64 = 1_000_000_000_000;

/// The largest register or meter array that is written as a whole.
const MAX_WHOLE: u64 = 1 << 22;

/// The packets that left, in order, by port.
pub type Outputs = BTreeMap<u32, Vec<Vec<u8>>>;

/// Runs a script on a new switch. Returns the packets that left each port; `Err` describes a command that
/// failed or an expectation that was not met.
pub fn run(
    script: &Script,
    program: Arc<Program>,
    executor: Arc<dyn Executor>,
) -> Result<Outputs, String> {
    let mut runner = Runner {
        switch: Switch::new(program.clone(), executor, SwitchConfig::default()),
        program,
        now_ps: Time::ZERO,
        outputs: Outputs::new(),
        expected: BTreeMap::new(),
        entries: BTreeMap::new(),
        last_member: 0,
        digests: BTreeMap::new(),
        nodes: Vec::new(),
        groups: BTreeMap::new(),
        sessions: BTreeMap::new(),
    };
    for line in &script.lines {
        runner
            .command(&line.command)
            .map_err(|why| format!("line {}: {why}", line.number))?;
    }
    runner.compare()?;
    Ok(runner.outputs)
}

/// The destination of a session's clones.
#[derive(Clone, Copy)]
enum Destination {
    Port(u32),
    Group(u32),
}

struct Runner<'s> {
    switch: Switch,
    program: Arc<Program>,
    now_ps: Time,
    outputs: Outputs,
    /// The expected packets of each port, in order. They are identified by their position among the port's packets,
    /// not by line numbers.
    expected: BTreeMap<u32, Vec<&'s PacketPattern>>,
    /// The entries that have an id in the script, by the id.
    entries: BTreeMap<&'s str, (TableId, Vec<KeyMatch>, i32)>,
    /// The id of the member of an action profile that was made last. Scripts cannot name members, so each entry that
    /// needs one gets a member of its own.
    last_member: u32,
    digests: BTreeMap<usize, VecDeque<Vec<ir::Bits>>>,
    nodes: Vec<(u16, Vec<u32>)>,
    /// The nodes of each multicast group.
    groups: BTreeMap<u32, Vec<usize>>,
    sessions: BTreeMap<u32, Destination>,
}

impl<'s> Runner<'s> {
    fn command(&mut self, command: &'s Command) -> Resolved<()> {
        match command {
            Command::Add {
                table,
                priority,
                matches,
                action,
                id,
            } => {
                let (table, matches, priority) = self.key(table, *priority, matches)?;
                let (action, args) = resolve::call(&self.program, table, action)?;
                if let Some(id) = id {
                    let key = (table, matches.clone(), priority);
                    self.entries.insert(id, key);
                }
                let call = ActionCall { action, args };
                let mut entry = Entry::new(matches, priority, call.clone());
                if let Some(profile) = self.program.tables[table.index()].implementation {
                    entry.action = EntryAction::Target(self.new_member(profile, call)?);
                }
                self.write(Operation::Insert, Entity::TableEntry { table, entry })
            }
            Command::SetDefault { table, action } => {
                let table = resolve::table(&self.program, table)?;
                let (action, args) = resolve::call(&self.program, table, action)?;
                let action = Some(ActionCall { action, args });
                self.write(
                    Operation::Modify,
                    Entity::DefaultAction {
                        table,
                        action,
                        note: None,
                    },
                )
            }
            Command::RemoveAll => self.remove_all(),
            Command::Remove {
                table,
                priority,
                matches,
            } => {
                let (table, matches, priority) = self.key(table, *priority, matches)?;
                self.switch
                    .delete_entry(table, &matches, priority)
                    .map_err(|e| e.to_string())
            }
            Command::Packet { port, data } => {
                self.packet(*port, data);
                Ok(())
            }
            Command::Expect { port, pattern } => {
                self.expected.entry(*port).or_default().push(pattern);
                Ok(())
            }
            Command::NoPacket => Ok(()),
            Command::Wait => {
                self.now_ps += WAIT_PS;
                Ok(())
            }
            other => self.object_command(other),
        }
    }

    fn object_command(&mut self, command: &'s Command) -> Resolved<()> {
        match command {
            Command::CheckCounter {
                counter,
                cell,
                check,
            } => self.check_counter(counter, cell, *check),
            Command::CounterRead { counter, index } => {
                self.check_counter(counter, &Cell::Index(*index), None)
            }
            Command::CounterWrite {
                counter,
                index,
                packets,
                bytes,
            } => {
                let counter = self.counter(counter)?;
                let data = CounterData {
                    packets: *packets,
                    bytes: *bytes,
                };
                self.switch
                    .write_counter(counter, *index, data)
                    .map_err(|e| e.to_string())
            }
            Command::CheckRegister {
                register,
                index,
                comparison,
                value,
            } => self.check_register(register, *index, *comparison, value),
            Command::RegisterRead { register, index } => {
                let register = self.register(register)?;
                let cell = self.switch.read_register(register, *index);
                cell.map(|_| ()).map_err(|e| e.to_string())
            }
            Command::RegisterWrite {
                register,
                index,
                value,
            } => {
                let id = self.register(register)?;
                let width = self.program.registers[id.index()].width;
                let value = resolve::exact(value, width, register)?;
                self.switch
                    .write_register(id, *index, value)
                    .map_err(|e| e.to_string())
            }
            Command::RegisterReset { register } => self.register_reset(register),
            Command::CheckDigest { digest, values } => self.check_digest(digest, values),
            Command::MeterGetRates { meter, index } => {
                let meter = self.meter(meter)?;
                let cell = self.switch.read_meter(meter, *index);
                cell.map(|_| ()).map_err(|e| e.to_string())
            }
            Command::MeterSetRates {
                meter,
                index,
                rates,
            } => {
                let meter = self.meter(meter)?;
                self.set_meter(meter, *index, *rates)
            }
            Command::MeterArraySetRates { meter, rates } => {
                let id = self.meter(meter)?;
                let size = self.program.meters[id.index()].size.unwrap_or(0);
                (0..size.min(MAX_WHOLE)).try_for_each(|index| self.set_meter(id, index, *rates))
            }
            other => self.replication_command(other),
        }
    }

    fn replication_command(&mut self, command: &'s Command) -> Resolved<()> {
        match command {
            Command::MirroringAdd { session, port } => {
                self.sessions.insert(*session, Destination::Port(*port));
                self.put_session(*session)
            }
            Command::MirroringAddMulticast { session, group } => {
                self.sessions.insert(*session, Destination::Group(*group));
                self.put_session(*session)
            }
            Command::MirroringDelete { session } => {
                let known = self.sessions.remove(session).is_some();
                known_or(known, "clone session", *session)?;
                self.put_session(*session)
            }
            Command::MirroringGet { session } => known_or(
                self.sessions.contains_key(session),
                "clone session",
                *session,
            ),
            Command::GroupCreate { group } => {
                self.groups.insert(*group, Vec::new());
                self.put_group(*group)
            }
            Command::NodeCreate { rid, ports } => {
                self.nodes.push((*rid, ports.clone()));
                Ok(())
            }
            Command::NodeUpdate { node, ports } => {
                let found = self.nodes.get_mut(*node as usize);
                known_or(found.is_some(), "multicast node", *node)?;
                if let Some(found) = found {
                    found.1 = ports.clone();
                }
                let groups: Vec<u32> = self.groups.keys().copied().collect();
                groups.into_iter().try_for_each(|g| self.put_group(g))
            }
            Command::NodeAssociate { group, node } => {
                let exists = (*node as usize) < self.nodes.len();
                known_or(exists, "multicast node", *node)?;
                let nodes = self.groups.get_mut(group);
                known_or(nodes.is_some(), "multicast group", *group)?;
                if let Some(nodes) = nodes {
                    nodes.push(*node as usize);
                }
                self.put_group(*group)
            }
            // The callers deal with all others.
            _ => Ok(()),
        }
    }

    fn write(&mut self, operation: Operation, entity: Entity) -> Resolved<()> {
        self.switch
            .write(Update { operation, entity })
            .map_err(|e| e.to_string())
    }

    fn new_member(&mut self, profile: ActionProfileId, call: ActionCall) -> Resolved<Target> {
        self.last_member += 1;
        let member_id = self.last_member;
        self.write(
            Operation::Insert,
            Entity::ActionProfileMember {
                profile,
                member_id,
                call: Some(call),
            },
        )?;
        Ok(Target::Member(member_id))
    }

    /// Converts the table, priority and matches of a script to those of the switch. The switch's priorities
    /// start at 1, those of scripts at 0; in a table without priorities the switch's is 0.
    fn key(
        &self,
        table: &str,
        priority: Option<u32>,
        matches: &[(String, Pattern)],
    ) -> Resolved<(TableId, Vec<KeyMatch>, i32)> {
        let table = resolve::table(&self.program, table)?;
        let matches = resolve::matches(&self.program, table, matches)?;
        let priority = if self.program.tables[table.index()].needs_priority() {
            i32::try_from(u64::from(priority.unwrap_or(0)) + 1)
                .map_err(|_| "the priority is too large".to_string())?
        } else {
            0
        };
        Ok((table, matches, priority))
    }

    fn remove_all(&mut self) -> Resolved<()> {
        for table in (0..self.program.tables.len() as u32).map(TableId) {
            let entries = self.switch.read_entries(table).map_err(|e| e.to_string())?;
            for installed in entries.iter().filter(|e| !e.is_const) {
                let entry = &installed.entry;
                self.switch
                    .delete_entry(table, &entry.matches, entry.priority)
                    .map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }

    fn packet(&mut self, port: u32, data: &[u8]) {
        let mut out = Vec::new();
        self.switch
            .receive(self.now_ps, port, Packet::new(data), &mut out);
        for output in out {
            let packets = self.outputs.entry(output.port).or_default();
            packets.push(output.packet.bytes().to_vec());
        }
        self.now_ps += PACKET_PS;
    }

    fn counter(&self, name: &str) -> Resolved<CounterId> {
        let names = self.program.counters.iter().map(|c| c.name.as_str());
        Ok(CounterId(resolve::find("counter", name, names)? as u32))
    }

    fn register(&self, name: &str) -> Resolved<RegisterId> {
        let names = self.program.registers.iter().map(|r| r.name.as_str());
        Ok(RegisterId(resolve::find("register", name, names)? as u32))
    }

    fn meter(&self, name: &str) -> Resolved<MeterId> {
        let names = self.program.meters.iter().map(|m| m.name.as_str());
        Ok(MeterId(resolve::find("meter", name, names)? as u32))
    }

    fn check_counter(
        &mut self,
        name: &str,
        cell: &Cell,
        check: Option<CounterCheck>,
    ) -> Resolved<()> {
        let counter = self.counter(name)?;
        let data = match cell {
            Cell::Index(index) => self.switch.read_counter(counter, *index),
            Cell::Entry(id) => {
                let (table, matches, priority) = self
                    .entries
                    .get(id.as_str())
                    .ok_or_else(|| format!("no entry was added as `{id}`"))?;
                self.switch.read_direct_counter(*table, matches, *priority)
            }
        };
        let data = data.map_err(|e| e.to_string())?;
        let Some(check) = check else { return Ok(()) };
        let (actual, unit) = if check.bytes {
            (data.bytes, "bytes")
        } else {
            (data.packets, "packets")
        };
        if check.comparison.holds(actual.cmp(&check.value)) {
            return Ok(());
        }
        Err(format!(
            "{name} counted {actual} {unit}, expected {} {}",
            check.comparison.text(),
            check.value
        ))
    }

    fn check_register(
        &mut self,
        name: &str,
        index: u64,
        comparison: Comparison,
        value: &Number,
    ) -> Resolved<()> {
        let register = self.register(name)?;
        let actual = self
            .switch
            .read_register(register, index)
            .map_err(|e| e.to_string())?;
        let expected = resolve::exact(value, actual.width(), name)?;
        if comparison.holds(actual.ucmp(&expected)) {
            return Ok(());
        }
        Err(format!(
            "{name}[{index}] is 0x{}, expected {} 0x{}",
            hex(&actual.to_be_bytes()),
            comparison.text(),
            hex(&expected.to_be_bytes())
        ))
    }

    fn register_reset(&mut self, name: &str) -> Resolved<()> {
        let id = self.register(name)?;
        let register = &self.program.registers[id.index()];
        let (size, zero) = (register.size, ir::Bits::zero(register.width));
        if size > MAX_WHOLE {
            return Err(format!("{name} has too many cells to reset them all"));
        }
        (0..size).try_for_each(|index| {
            self.switch
                .write_register(id, index, zero.clone())
                .map_err(|e| e.to_string())
        })
    }

    fn check_digest(&mut self, name: &str, values: &[Number]) -> Resolved<()> {
        let names = self.program.digests.iter().map(|d| d.name.as_str());
        let digest = resolve::find("digest", name, names)?;
        for list in self.switch.take_digests(self.now_ps) {
            let waiting = self.digests.entry(list.digest.index()).or_default();
            waiting.extend(list.messages);
        }
        let waiting = self.digests.entry(digest).or_default();
        let message = waiting
            .pop_front()
            .ok_or_else(|| format!("no {name} message waits"))?;
        if message.len() != values.len() {
            return Err(format!(
                "{name} has {} members, not {}",
                message.len(),
                values.len()
            ));
        }
        for (i, (actual, expected)) in message.iter().zip(values).enumerate() {
            let expected = resolve::exact(expected, actual.width(), name)?;
            if *actual != expected {
                return Err(format!(
                    "member {i} of {name} is 0x{}, expected 0x{}",
                    hex(&actual.to_be_bytes()),
                    hex(&expected.to_be_bytes())
                ));
            }
        }
        Ok(())
    }

    fn set_meter(&mut self, meter: MeterId, index: u64, rates: [Rate; 2]) -> Resolved<()> {
        let config = MeterConfig {
            cir: rates[0].per_second,
            cburst: rates[0].burst,
            pir: rates[1].per_second,
            pburst: rates[1].burst,
        };
        self.switch
            .write_meter(meter, index, Some(config))
            .map_err(|e| e.to_string())
    }

    fn replicas(&self, group: u32) -> Vec<Replica> {
        let nodes = self.groups.get(&group).into_iter().flatten();
        let replicas = nodes
            .filter_map(|&n| self.nodes.get(n))
            .flat_map(|(rid, ports)| ports.iter().map(|&port| Replica { port, rid: *rid }));
        replicas.collect()
    }

    /// Updates a multicast group of the switch to the nodes that the script has associated with it, and the clone
    /// sessions that send to the group.
    fn put_group(&mut self, group_id: u32) -> Resolved<()> {
        let exists = self
            .switch
            .multicast_groups()
            .any(|g| g.group_id == group_id);
        let replicas = self.replicas(group_id);
        let group = MulticastGroup { group_id, replicas };
        self.write(put(exists), Entity::MulticastGroup(group))?;
        let leads_here = |d: &Destination| matches!(d, Destination::Group(g) if *g == group_id);
        let sessions: Vec<u32> = self
            .sessions
            .iter()
            .filter_map(|(&s, d)| leads_here(d).then_some(s))
            .collect();
        sessions.into_iter().try_for_each(|s| self.put_session(s))
    }

    /// Updates a clone session of the switch to the destination that the script has given it, or deletes the session
    /// if it has none.
    fn put_session(&mut self, session_id: u32) -> Resolved<()> {
        let exists = self
            .switch
            .clone_sessions()
            .any(|s| s.session_id == session_id);
        let destination = self.sessions.get(&session_id).copied();
        let replicas = match destination {
            Some(Destination::Port(port)) => vec![Replica { port, rid: 0 }],
            Some(Destination::Group(group)) => self.replicas(group),
            None => Vec::new(),
        };
        let operation = if destination.is_some() {
            put(exists)
        } else {
            Operation::Delete
        };
        let session = CloneSession {
            session_id,
            replicas,
            packet_length_bytes: 0,
            class_of_service: 0,
        };
        self.write(operation, Entity::CloneSession(session))
    }

    /// Compares the packets that left each port with the expected ones, in order. `Err` lists the packets
    /// that differ.
    fn compare(&self) -> Resolved<()> {
        let mut differences = String::new();
        let ports = self.outputs.keys().chain(self.expected.keys());
        let ports: std::collections::BTreeSet<u32> = ports.copied().collect();
        for port in ports {
            let left = self.outputs.get(&port).map(Vec::as_slice).unwrap_or(&[]);
            let expected = self.expected.get(&port).map(Vec::as_slice).unwrap_or(&[]);
            if left.len() == expected.len() && expected.iter().zip(left).all(|(e, p)| e.matches(p))
            {
                continue;
            }
            for i in 0..left.len().max(expected.len()) {
                let packet = left.get(i).map(Vec::as_slice);
                describe(&mut differences, port, i, expected.get(i).copied(), packet);
            }
        }
        match differences.is_empty() {
            true => Ok(()),
            false => Err(differences.trim_end().to_string()),
        }
    }
}

/// Appends the expected and the actual packet to `text`, each on a line, if they differ. `None` stands for a packet
/// that is missing.
fn describe(
    text: &mut String,
    port: u32,
    position: usize,
    expected: Option<&PacketPattern>,
    packet: Option<&[u8]>,
) {
    if matches!((expected, packet), (Some(e), Some(p)) if e.matches(p)) {
        return;
    }
    let expected = expected.map_or("nothing".to_string(), |e| e.to_string());
    let packet = packet.map_or("nothing".to_string(), hex);
    // Writing to a String does not fail.
    let _ = write!(
        text,
        "port {port}, packet {position}:\n  expected {expected}\n  got      {packet}\n"
    );
}

fn put(exists: bool) -> Operation {
    if exists {
        Operation::Modify
    } else {
        Operation::Insert
    }
}

fn known_or(known: bool, what: &str, id: u32) -> Resolved<()> {
    if known {
        return Ok(());
    }
    Err(format!("there is no {what} {id}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
