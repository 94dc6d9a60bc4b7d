//! A history of packets and control operations out of bytes.

use crate::choices::Choices;
use crate::frames::{self, ADDRESSES, PROTOCOLS};
use crate::twin::{Subject, Twin};
use engine::control::{CloneSession, Entity, Entry, MulticastGroup, Operation, Replica, Update};
use engine::meter::MeterConfig;
use engine::runtime::CounterData;
use ir::{
    ActionCall, ActionId, Bits, CounterId, Key, KeyMatch, MatchKind, MeterId, Program, RegisterId,
    TableId,
};

/// Entries that each table starts with.
const FIRST_ENTRIES: u32 = 3;

/// Most operations in one history.
const MAX_OPERATIONS: usize = 64;

/// The first counter cell that the control plane writes to; those before are the packets' alone.
const WRITTEN_CELLS: u64 = 8;

/// Ports, the controller's among them.
const PORTS: [u32; 6] = [0, 1, 2, 3, 7, 510];

/// What happened in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that arrived.
    pub received: u64,
    /// Packets that left.
    pub sent: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Control operations that were accepted.
    pub accepted: u64,
    /// Control operations that were refused.
    pub refused: u64,
    /// What packets (and not the control plane) counted, by counter; entries' own counters are left out.
    pub counted: Vec<u64>,
}

impl std::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.received += other.received;
        self.sent += other.sent;
        self.dropped += other.dropped;
        self.accepted += other.accepted;
        self.refused += other.refused;
        let counters = self.counted.len().max(other.counted.len());
        self.counted.resize(counters, 0);
        for (sum, count) in self.counted.iter_mut().zip(other.counted) {
            *sum += count;
        }
    }
}

/// Writes a packet, for the controller's port or another.
pub type Frames = fn(&mut Choices<'_>, bool) -> Vec<u8>;

/// Runs the history that `bytes` spell on fresh switches; an error says where the executors differ.
pub fn run(subject: &Subject, bytes: &[u8]) -> Result<Statistics, String> {
    run_with(subject, bytes, frames::frame)
}

/// Like [`run`], with packets of another kind.
pub fn run_with(subject: &Subject, bytes: &[u8], frame: Frames) -> Result<Statistics, String> {
    let mut choices = Choices::new(bytes);
    let mut twin = Twin::new(subject);
    let mut statistics = Statistics::default();
    // Entries first, so that packets find some.
    for round in 0..FIRST_ENTRIES * subject.program.tables.len() as u32 {
        let table = TableId(round % subject.program.tables.len() as u32);
        let entity = entry(&mut choices, &subject.program, table);
        let operation = Operation::Insert;
        match twin.write(Update { operation, entity })? {
            true => statistics.accepted += 1,
            false => statistics.refused += 1,
        }
    }
    for _ in 0..MAX_OPERATIONS {
        if choices.is_over() {
            break;
        }
        twin.advance(u64::from(choices.byte()) * 1_000_000_000);
        if choices.below(8) >= 5 {
            let update = update(&mut choices, &subject.program);
            match twin.write(update)? {
                true => statistics.accepted += 1,
                false => statistics.refused += 1,
            }
        } else {
            let port = choices.pick(&PORTS);
            let frame = frame(&mut choices, port == 510);
            statistics.received += 1;
            statistics.sent += twin.receive(port, &frame)? as u64;
        }
    }
    twin.compare_state()?;
    statistics.dropped = twin.drops();
    statistics.counted = twin.counted(WRITTEN_CELLS);
    Ok(statistics)
}

/// Runs packets of any bytes, at all ports, without control operations.
pub fn run_packets(subject: &Subject, bytes: &[u8]) -> Result<Statistics, String> {
    let mut choices = Choices::new(bytes);
    let mut twin = Twin::new(subject);
    let mut statistics = Statistics::default();
    for _ in 0..8 {
        let port = choices.pick(&PORTS);
        let length = choices.below(100) as usize;
        statistics.received += 1;
        statistics.sent += twin.receive(port, &choices.bytes(length))? as u64;
    }
    twin.compare_state()?;
    statistics.dropped = twin.drops();
    Ok(statistics)
}

fn update(choices: &mut Choices<'_>, program: &Program) -> Update {
    let operation = choices.pick(&[
        Operation::Insert,
        Operation::Insert,
        Operation::Insert,
        Operation::Modify,
        Operation::Delete,
    ]);
    let entity = match choices.below(16) {
        0..=8 if !program.tables.is_empty() => {
            let table = TableId(choices.below(program.tables.len() as u32));
            entry(choices, program, table)
        }
        9 if !program.tables.is_empty() => default_action(choices, program),
        10 if !program.registers.is_empty() => {
            let register = choices.below(program.registers.len() as u32);
            Entity::Register {
                register: RegisterId(register),
                index: Some(u64::from(choices.below(16))),
                value: choices.bits(program.registers[register as usize].width),
            }
        }
        11 if !program.counters.is_empty() => Entity::Counter {
            counter: CounterId(choices.below(program.counters.len() as u32)),
            index: Some(WRITTEN_CELLS + u64::from(choices.below(16))),
            data: CounterData {
                packets: u64::from(choices.byte()),
                bytes: u64::MAX - u64::from(choices.byte()),
            },
        },
        12 if !program.meters.is_empty() => Entity::Meter {
            meter: MeterId(choices.below(program.meters.len() as u32)),
            index: Some(u64::from(choices.below(16))),
            config: Some(MeterConfig {
                cir: u64::from(choices.byte()),
                cburst: u64::from(choices.byte()),
                pir: 255,
                pburst: u64::from(choices.byte()),
            }),
        },
        13 => Entity::CloneSession(CloneSession {
            session_id: choices.below(4),
            replicas: replicas(choices),
            packet_length_bytes: choices.below(64),
            class_of_service: choices.below(8) as u8,
        }),
        _ => Entity::MulticastGroup(MulticastGroup {
            group_id: 1 + choices.below(3),
            replicas: replicas(choices),
        }),
    };
    let operation = match entity {
        Entity::TableEntry { .. } | Entity::CloneSession(_) | Entity::MulticastGroup(_) => {
            operation
        }
        _ => Operation::Modify,
    };
    Update { operation, entity }
}

fn replicas(choices: &mut Choices<'_>) -> Vec<Replica> {
    let count = choices.below(4);
    let replica = |choices: &mut Choices<'_>| Replica {
        port: choices.pick(&PORTS),
        rid: choices.below(4) as u16,
    };
    (0..count).map(|_| replica(choices)).collect()
}

fn entry(choices: &mut Choices<'_>, program: &Program, table: TableId) -> Entity {
    let declared = &program.tables[table.index()];
    let matches = declared
        .keys
        .iter()
        .map(|k| key_match(choices, k))
        .collect();
    let priority = match declared.needs_priority() {
        true => 1 + choices.below(4) as i32,
        false => 0,
    };
    let (action, args) = action(choices, program, table);
    Entity::TableEntry {
        table,
        entry: Entry::new(matches, priority, ActionCall { action, args }),
    }
}

fn default_action(choices: &mut Choices<'_>, program: &Program) -> Entity {
    let table = TableId(choices.below(program.tables.len() as u32));
    let (action, args) = action(choices, program, table);
    Entity::DefaultAction {
        table,
        action: Some(ActionCall { action, args }),
    }
}

fn action(choices: &mut Choices<'_>, program: &Program, table: TableId) -> (ActionId, Vec<Bits>) {
    let actions = &program.tables[table.index()].actions;
    if actions.is_empty() {
        return (ActionId(0), Vec::new());
    }
    let action = actions[choices.below(actions.len() as u32) as usize].action;
    let params = &program.actions[action.index()].params;
    let widths = params.iter().map(|p| program.slots[p.slot.index()].width);
    (action, widths.map(|w| value(choices, w)).collect())
}

/// A value that has a chance to mean something: an address, a port, a small number.
fn value(choices: &mut Choices<'_>, width: u32) -> Bits {
    match width {
        32 if choices.one_in(4) => Bits::from_u64(32, u64::from(choices.pick(&ADDRESSES))),
        9 => Bits::from_u64(9, u64::from(choices.pick(&PORTS))),
        16 if choices.one_in(2) => Bits::from_u64(16, choices.pick(&[1500, 60])),
        16.. if !choices.one_in(4) => Bits::from_u64(width, u64::from(choices.below(4))),
        _ => choices.bits(width),
    }
}

/// A value that packets have in such a field.
fn key_value(choices: &mut Choices<'_>, width: u32) -> Bits {
    match width {
        32 if !choices.one_in(8) => Bits::from_u64(32, u64::from(choices.pick(&ADDRESSES))),
        8 if !choices.one_in(4) => Bits::from_u64(8, u64::from(choices.pick(&PROTOCOLS))),
        10.. if !choices.one_in(8) => Bits::from_u64(width, u64::from(choices.below(4))),
        _ => value(choices, width),
    }
}

fn key_match(choices: &mut Choices<'_>, key: &Key) -> KeyMatch {
    let width = key.width;
    match key.kind {
        MatchKind::Exact => KeyMatch::Exact(key_value(choices, width)),
        MatchKind::Lpm => {
            let prefix_len = match choices.below(3) {
                0 => width,
                1 => width / 2,
                _ => choices.below(256) % (width + 1),
            };
            let value = key_value(choices, width).and(&Bits::prefix_mask(width, prefix_len));
            KeyMatch::Lpm { value, prefix_len }
        }
        MatchKind::Ternary => {
            let mask = match choices.below(4) {
                0 | 1 => Bits::zero(width),
                2 => Bits::ones(width),
                _ => choices.bits(width),
            };
            let value = key_value(choices, width).and(&mask);
            KeyMatch::Ternary { value, mask }
        }
        MatchKind::Range => {
            let (a, b) = (key_value(choices, width), key_value(choices, width));
            let (low, high) = if a.ucmp(&b).is_le() { (a, b) } else { (b, a) };
            KeyMatch::Range { low, high }
        }
        MatchKind::Optional if choices.one_in(2) => {
            KeyMatch::Optional(Some(key_value(choices, width)))
        }
        MatchKind::Optional | MatchKind::Selector => KeyMatch::Optional(None),
    }
}
