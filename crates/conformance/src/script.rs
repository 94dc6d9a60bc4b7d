//! A history as a script for the reference switch: commands of its command line (`simple_switch_CLI`), packets, and what the interpreter sends
//! for each. The state comes first and then only packets, because the reference switch does both at its own time.
//!
//! It deliberately leaves out what the reference switch cannot be told or decides by its own clock: meters, action profiles, sessions
//! with several replicas, values of registers above 64 bits.

use crate::choices::Choices;
use crate::history::{self, Dialect, PORTS};
use crate::twin::{self, Passage};
use engine::control::{
    CloneSession, Entity, Entry, EntryAction, MulticastGroup, Operation, Replica, Update,
};
use engine::{Executor, Interpreter, Output, Packet, Switch, SwitchConfig};
use ir::{ActionCall, Bits, KeyMatch, Program, RegisterId, TableId};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The number of packets of a script: fewer than fit into the reference switch's queues.
const PACKETS: usize = 48;

/// The number of updates after the first entries.
const UPDATES: usize = 24;

/// The number of entries that each table has at first.
const FIRST_ENTRIES: u32 = 4;

/// A number greater than any priority of an entry, to invert priorities: in the reference switch, the lowest number
/// wins.
const PRIORITIES: i32 = 1_000_000;

/// The passages of the three runs that a script comes of, by the packet's number: no time at all, quick packets, slow packets.
const PASSAGES: [fn(u64) -> Passage; 3] = [
    |_| Passage {
        arrives_us: 0,
        stays_us: 0,
        queue: 0,
    },
    |number| Passage {
        arrives_us: 0x001a_2b3c + 0x89 * number,
        stays_us: 0x3a57,
        queue: 0x01,
    },
    |number| Passage {
        arrives_us: 0x00c3_1798 + 0x000b_1375 * number,
        stays_us: 0x0009_9d65,
        queue: 0x1f,
    },
];

/// The port and the bytes of a packet.
pub type Frame = (u32, Vec<u8>);

/// The port and the bytes of a packet that leaves; `None` stands for a byte that depends on time.
pub type Pattern = (u32, Vec<Option<u8>>);

/// A packet that arrives, and the packets that it causes to leave.
pub type Exchange = (Frame, Vec<Pattern>);

/// A script for the reference switch.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Lines for `simple_switch_CLI`.
    pub commands: Vec<String>,
    /// The packets, in the order in which they are sent.
    pub packets: Vec<Exchange>,
}

impl Script {
    /// Returns the script as text. Each line is a command, `packet PORT HEX` or `expect PORT HEX`, with
    /// `**` for a byte of any value.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for command in &self.commands {
            let _ = writeln!(text, "{command}");
        }
        for ((port, packet), sent) in &self.packets {
            let _ = writeln!(text, "packet {port} {}", hex(packet));
            for (port, bytes) in sent {
                let byte = |byte: &Option<u8>| match byte {
                    Some(byte) => format!("{byte:02x}"),
                    None => "**".to_string(),
                };
                let bytes: String = bytes.iter().map(byte).collect();
                let _ = writeln!(text, "expect {port} {bytes}");
            }
        }
        text
    }

    /// Returns the number of packets that the switch is expected to send.
    pub fn sent(&self) -> usize {
        self.packets.iter().map(|(_, sent)| sent.len()).sum()
    }

    /// Keeps only the output that this run of the script and `other` have in common: puts a wildcard in place of each
    /// byte that differs, and removes all packets from the first one on for which other packets leave.
    fn keep_common(&mut self, other: &Script) {
        let same = |(a, b): &(&Exchange, &Exchange)| {
            let shape = |sent: &[Pattern]| -> Vec<(u32, usize)> {
                sent.iter()
                    .map(|(port, bytes)| (*port, bytes.len()))
                    .collect()
            };
            shape(&a.1) == shape(&b.1)
        };
        let common = self
            .packets
            .iter()
            .zip(&other.packets)
            .take_while(same)
            .count();
        self.packets.truncate(common);
        for ((_, sent), (_, others)) in self.packets.iter_mut().zip(&other.packets) {
            for ((_, bytes), (_, others)) in sent.iter_mut().zip(others) {
                for (byte, other) in bytes.iter_mut().zip(others) {
                    *byte = byte.filter(|_| *byte == *other);
                }
            }
        }
    }
}

/// Writes the history that `bytes` determine as a script. Runs it three times, with different times and queue lengths
/// of the packets, and keeps only the output that is the same in all three runs.
pub fn write(program: &Arc<Program>, bytes: &[u8], dialect: &Dialect) -> Script {
    let [mut script, second, third] = PASSAGES.map(|passage| {
        let mut choices = Choices::new(bytes);
        let executor: Arc<dyn Executor> = Arc::new(Interpreter::new(program.clone()));
        let mut writer = Writer {
            switch: Switch::new(program.clone(), executor, SwitchConfig::default()),
            program,
            passage,
            script: Script::default(),
            groups: BTreeMap::new(),
            entries: 0,
        };
        writer.write_state(&mut choices, dialect);
        writer.send_packets(&mut choices, dialect);
        writer.script
    });
    script.keep_common(&second);
    script.keep_common(&third);
    script
}

struct Writer<'a> {
    program: &'a Program,
    switch: Switch,
    passage: fn(u64) -> Passage,
    script: Script,
    /// The number of nodes of each multicast group that exists.
    groups: BTreeMap<u32, usize>,
    entries: i32,
}

impl Writer<'_> {
    fn write_state(&mut self, choices: &mut Choices<'_>, dialect: &Dialect) {
        for (i, register) in self.program.registers.iter().enumerate() {
            // The agent's registers begin with all ports up.
            for cell in (0..register.size).filter(|_| register.port_state) {
                let id = RegisterId(i as u32);
                if let Ok(value) = self.switch.read_register(id, cell) {
                    let value = value.to_u64().unwrap_or_default();
                    let line = format!("register_write {} {cell} {value}", register.name);
                    self.script.commands.push(line);
                }
            }
        }
        for update in (dialect.first)(choices, self.program) {
            self.update(update);
        }
        for round in 0..FIRST_ENTRIES * self.program.tables.len() as u32 {
            let table = TableId(round % self.program.tables.len() as u32);
            let update = Update {
                operation: Operation::Insert,
                entity: history::entry(choices, self.program, table),
            };
            self.update(history::in_dialect(choices, self.program, dialect, update));
        }
        for _ in 0..UPDATES {
            let update = history::update(choices, self.program);
            self.update(history::in_dialect(choices, self.program, dialect, update));
        }
    }

    /// Applies an update to the switch, and adds its command to the script. Leaves out an update that no
    /// command can express or that the switch refuses.
    fn update(&mut self, mut update: Update) {
        if let Entity::TableEntry { entry, .. } = &mut update.entity {
            // No two entries have the same priority: which of them wins is the switch's matter.
            if entry.priority > 0 {
                self.entries += 1;
                entry.priority = self.entries;
            }
            entry.meter = None;
        }
        let Some(lines) = self.commands(&update) else {
            return;
        };
        let group = match &update.entity {
            Entity::MulticastGroup(group) => Some((group.group_id, group.replicas.len())),
            _ => None,
        };
        if self.switch.write(update).is_ok() {
            self.script.commands.extend(lines);
            self.groups.extend(group);
        }
    }

    fn commands(&self, update: &Update) -> Option<Vec<String>> {
        let tables = &self.program.tables;
        let line = match (&update.operation, &update.entity) {
            (Operation::Insert, Entity::TableEntry { table, entry }) => {
                self.table_add(&tables[table.index()], entry)?
            }
            (Operation::Modify, Entity::DefaultAction { table, action, .. }) => {
                let table = &tables[table.index()];
                if table.implementation.is_some() {
                    return None;
                }
                let (name, args) = self.call(action.as_ref()?);
                format!("table_set_default {} {name} {args}", table.name)
            }
            (
                Operation::Modify,
                Entity::Register {
                    register,
                    index,
                    value,
                },
            ) => {
                let register = &self.program.registers[register.index()];
                let (index, value) = ((*index)?, value.to_u64()?);
                if register.width > 63 || index >= register.size {
                    return None;
                }
                format!("register_write {} {index} {value}", register.name)
            }
            (Operation::Insert, Entity::CloneSession(session)) => mirroring_add(session)?,
            (Operation::Insert, Entity::MulticastGroup(group)) => return self.group_create(group),
            _ => return None,
        };
        Some(vec![line])
    }

    fn table_add(&self, table: &ir::Table, entry: &Entry) -> Option<String> {
        let EntryAction::Call(call) = &entry.action else {
            return None;
        };
        if table.const_entries || table.implementation.is_some() {
            return None;
        }
        let (name, args) = self.call(call);
        let keys = table.keys.iter().zip(&entry.matches);
        let keys: Vec<String> = keys.map(|(field, found)| key(field, found)).collect();
        let mut line = format!(
            "table_add {} {name} {} => {args}",
            table.name,
            keys.join(" ")
        );
        if table.needs_priority() {
            let _ = write!(line, " {}", PRIORITIES - entry.priority);
        }
        Some(line)
    }

    fn call(&self, call: &ActionCall) -> (String, String) {
        let args: Vec<String> = call.args.iter().map(number).collect();
        (
            self.program.actions[call.action.index()].name.clone(),
            args.join(" "),
        )
    }

    fn group_create(&self, group: &MulticastGroup) -> Option<Vec<String>> {
        let first: usize = self.groups.values().sum();
        let mut lines = vec![format!("mc_mgrp_create {}", group.group_id)];
        for (i, Replica { port, rid }) in group.replicas.iter().enumerate() {
            lines.push(format!("mc_node_create {rid} {port}"));
            lines.push(format!(
                "mc_node_associate {} {}",
                group.group_id,
                first + i
            ));
        }
        Some(lines)
    }

    fn send_packets(&mut self, choices: &mut Choices<'_>, dialect: &Dialect) {
        for number in 0..PACKETS {
            if choices.is_over() {
                return;
            }
            let port = choices.pick(&PORTS);
            let packet = (dialect.frame)(choices, port == 510);
            let passage = (self.passage)(number as u64);
            let received = Packet::new(&packet);
            let out = twin::run_by_halves(&mut self.switch, passage, port, received);
            // What an access beyond an array gives is the target's matter: v1model leaves it open.
            if self.switch.runtime().out_of_range() != Default::default() {
                return;
            }
            let pattern =
                |o: &Output| (o.port, o.packet.bytes().iter().copied().map(Some).collect());
            let sent = out.iter().filter(|o| PORTS.contains(&o.port)).map(pattern);
            let sent = sent.collect();
            self.script.packets.push(((port, packet), sent));
        }
    }
}

/// Returns the command for a clone session with one replica that sends whole packets; `None` for any other session.
fn mirroring_add(session: &CloneSession) -> Option<String> {
    match session.replicas.as_slice() {
        [Replica { port, rid: 0 | 1 }] if session.packet_length_bytes == 0 => {
            Some(format!("mirroring_add {} {port}", session.session_id))
        }
        _ => None,
    }
}

fn key(field: &ir::Key, found: &KeyMatch) -> String {
    match found {
        KeyMatch::Any => "0&&&0".to_string(),
        KeyMatch::Value(value) if field.kind.is_exact() => number(value),
        KeyMatch::Value(value) => {
            format!("{}&&&{}", number(value), number(&Bits::ones(value.width())))
        }
        KeyMatch::Prefix { value, prefix_len } => format!("{}/{prefix_len}", number(value)),
        KeyMatch::Masked { value, mask } => format!("{}&&&{}", number(value), number(mask)),
        KeyMatch::Range { low, high } => format!("{}->{}", number(low), number(high)),
    }
}

fn number(value: &Bits) -> String {
    format!("0x{}", hex(&value.to_be_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
