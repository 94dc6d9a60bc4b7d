//! A history of packets and control operations out of bytes.

use crate::choices::Choices;
use crate::frames::{self, ADDRESSES, PROTOCOLS};
use crate::twin::{Subject, Twin};
use engine::Time;
use engine::control::{
    CloneSession, Entity, Entry, EntryAction, GroupContents, GroupMember, MulticastGroup,
    Operation, Replica, Target, Update, WeightedAction,
};
use engine::meter::MeterConfig;
use engine::runtime::CounterData;
use ir::{
    ActionCall, ActionId, ActionProfileId, Bits, CounterId, Key, KeyMatch, MeterId, Program,
    RegisterId, TableId, ValueSetId,
};

/// The number of entries that each table has at first.
const FIRST_ENTRIES: u32 = 3;

/// The most operations in one history.
const MAX_OPERATIONS: usize = 64;

/// The first counter cell that the control plane writes to; cells before it are changed by packets only.
const WRITTEN_CELLS: u64 = 8;

/// The ports in packets and entries, among them the controller's.
pub(crate) const PORTS: [u32; 6] = [0, 1, 2, 3, 7, 510];

/// The ports that at first lead to the domain of a program that has one; the control plane changes them at random.
const DOMAIN_PORTS: [u32; 4] = [1, 2, 3, 7];

/// What happened in a history, in numbers.
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
    /// For each counter, the packets or bytes counted by packets, not set by the control plane; direct counters are
    /// not included.
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

/// Generates a packet; the argument is true for a packet that arrives at the controller's port.
pub type Frames = fn(&mut Choices<'_>, bool) -> Vec<u8>;

/// What a program's histories consist of: packets, values and updates that fit the program.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// Generates a packet.
    pub frame: Frames,
    /// Chooses a value for the action parameter with this name; `None` if any value will do.
    pub param: fn(&mut Choices<'_>, &str) -> Option<u64>,
    /// Returns the updates that are applied to the switch before all others.
    pub first: fn(&mut Choices<'_>, &Program) -> Vec<Update>,
}

impl Dialect {
    /// Makes a dialect whose packets `frame` generates, without special updates.
    pub fn of(frame: Frames) -> Dialect {
        Dialect {
            frame,
            param: |_, _| None,
            first: |_, _| Vec::new(),
        }
    }
}

/// Runs the history that `bytes` determine on two new switches. `Err` describes the difference between the executors.
pub fn run(subject: &Subject, bytes: &[u8]) -> Result<Statistics, String> {
    run_with(subject, bytes, &Dialect::of(frames::frame))
}

/// Runs a history as [`run`] does, with the packets and updates of a dialect. Fails like [`run`].
pub fn run_with(subject: &Subject, bytes: &[u8], dialect: &Dialect) -> Result<Statistics, String> {
    run_at(subject, bytes, dialect, None)
}

/// Runs a history as [`run_with`] does, but starts the clocks of the switches at `begin_ps`. The history writes no
/// times to registers, since such times would depend on `begin_ps`. Fails like [`run`].
pub fn run_from(
    subject: &Subject,
    bytes: &[u8],
    dialect: &Dialect,
    begin_ps: Time,
) -> Result<Statistics, String> {
    run_at(subject, bytes, dialect, Some(begin_ps))
}

fn run_at(
    subject: &Subject,
    bytes: &[u8],
    dialect: &Dialect,
    begin_ps: Option<Time>,
) -> Result<Statistics, String> {
    let Dialect { frame, .. } = *dialect;
    let mut choices = Choices::new(bytes);
    let mut twin = Twin::new(subject);
    twin.begin_at(begin_ps.unwrap_or_default());
    let mut statistics = Statistics::default();
    let mut first = first_members(&mut choices, &subject.program);
    first.extend((dialect.first)(&mut choices, &subject.program));
    first.extend(domain_ports(&subject.program));
    for update in first {
        match twin.write(update)? {
            true => statistics.accepted += 1,
            false => statistics.refused += 1,
        }
    }
    // Some ports are down from the start where the program asks for their state, so that many packets meet them.
    if subject.program.registers.iter().any(|r| r.port_state) {
        for port in PORTS.into_iter().filter(|_| choices.one_in(4)) {
            twin.set_port_up(port, false);
        }
    }
    // Entries first, so that packets find some.
    for round in 0..FIRST_ENTRIES * subject.program.tables.len() as u32 {
        let table = TableId(round % subject.program.tables.len() as u32);
        let entity = entry(&mut choices, &subject.program, table);
        let update = Update {
            operation: Operation::Insert,
            entity,
        };
        let update = in_dialect(&mut choices, &subject.program, dialect, update);
        match twin.write(update)? {
            true => statistics.accepted += 1,
            false => statistics.refused += 1,
        }
    }
    for _ in 0..MAX_OPERATIONS {
        if choices.is_over() {
            break;
        }
        twin.advance(u64::from(choices.byte()) * 1_000_000_000);
        let operation = choices.below(32);
        if operation == 31 {
            let port = choices.pick(&PORTS);
            twin.set_port_up(port, choices.one_in(2));
        } else if operation % 8 >= 5 {
            let update = update(&mut choices, &subject.program);
            let update = in_dialect(&mut choices, &subject.program, dialect, update);
            if begin_ps.is_some() && matches!(update.entity, Entity::Register { .. }) {
                continue;
            }
            match twin.write(update)? {
                true => statistics.accepted += 1,
                false => statistics.refused += 1,
            }
        } else {
            // Some arrive alone, some together.
            let count = if operation >= 24 {
                2 + choices.below(6)
            } else {
                1
            };
            let packet = |_| {
                let port = choices.pick(&PORTS);
                (port, frame(&mut choices, port == 510))
            };
            let packets: Vec<(u32, Vec<u8>)> = (0..count).map(packet).collect();
            statistics.received += packets.len() as u64;
            statistics.sent += match packets.as_slice() {
                [(port, packet)] => twin.receive(*port, packet)? as u64,
                several => twin.receive_burst(several)? as u64,
            };
        }
    }
    twin.compare_state()?;
    statistics.dropped = twin.drops();
    statistics.counted = twin.counted(WRITTEN_CELLS);
    Ok(statistics)
}

/// Runs packets of random bytes at random ports, without control operations. `Err` describes the difference
/// between the executors.
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

pub(crate) fn update(choices: &mut Choices<'_>, program: &Program) -> Update {
    let operation = choices.pick(&[
        Operation::Insert,
        Operation::Insert,
        Operation::Insert,
        Operation::Modify,
        Operation::Delete,
    ]);
    let entity = match choices.below(20) {
        16 | 17 if !program.action_profiles.is_empty() => member(choices, program),
        18 if !program.action_profiles.is_empty() => group(choices, program),
        19 if !program.value_sets.is_empty() => value_set(choices, program),
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
            config: Some(meter_config(choices)),
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
        Entity::TableEntry { .. }
        | Entity::CloneSession(_)
        | Entity::MulticastGroup(_)
        | Entity::ActionProfileMember { .. }
        | Entity::ActionProfileGroup { .. } => operation,
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

pub(crate) fn entry(choices: &mut Choices<'_>, program: &Program, table: TableId) -> Entity {
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
    let mut entry = Entry::new(matches, priority, ActionCall { action, args });
    if let Some(profile) = declared.implementation {
        let selects = program.action_profiles[profile.index()].selector.is_some();
        entry.action = EntryAction::Target(target(choices, program, table, selects));
    }
    if declared.direct_meter.is_some() && choices.one_in(2) {
        entry.meter = Some(meter_config(choices));
    }
    Entity::TableEntry { table, entry }
}

/// The number of members of action profiles and of groups of selectors; there are few, so that entries often refer to
/// the same ones.
const MEMBERS: u32 = 4;

fn target(choices: &mut Choices<'_>, program: &Program, table: TableId, selects: bool) -> Target {
    match choices.below(8) {
        1..=3 if selects => Target::Group(1 + choices.below(MEMBERS)),
        4 if selects => {
            let count = 1 + choices.below(3);
            let weighted = |choices: &mut Choices<'_>| {
                let (action, args) = action(choices, program, table);
                WeightedAction {
                    call: ActionCall { action, args },
                    weight: choices.below(4),
                    watch_port: choices.one_in(3).then(|| choices.pick(&PORTS)),
                }
            };
            Target::OneShot((0..count).map(|_| weighted(choices)).collect())
        }
        _ => Target::Member(1 + choices.below(MEMBERS)),
    }
}

/// Returns updates that insert members into every action profile and a group into every selector. The first table
/// entries refer to them.
fn first_members(choices: &mut Choices<'_>, program: &Program) -> Vec<Update> {
    let mut updates = Vec::new();
    for i in 0..program.action_profiles.len() as u32 {
        let profile = ActionProfileId(i);
        let members = (1..MEMBERS).map(|id| member_of(choices, program, profile, id));
        updates.extend(members.collect::<Vec<_>>());
        updates.push(group_of(choices, profile, 1));
    }
    let insert = |entity| Update {
        operation: Operation::Insert,
        entity,
    };
    updates.into_iter().map(insert).collect()
}

/// Returns updates that declare ports as leading to the domain, if the program has a register `domain_ports`. Such a
/// program refuses packets with the domain's headers at all other ports.
fn domain_ports(program: &Program) -> Vec<Update> {
    let mut registers = program.registers.iter();
    let Some(at) = registers.position(|r| r.name == "domain_ports") else {
        return Vec::new();
    };
    let entry = |port: &u32| Update {
        operation: Operation::Modify,
        entity: Entity::Register {
            register: RegisterId(at as u32),
            index: Some(u64::from(*port)),
            value: Bits::from_u64(1, 1),
        },
    };
    DOMAIN_PORTS.iter().map(entry).collect()
}

fn profile(choices: &mut Choices<'_>, program: &Program) -> ActionProfileId {
    ActionProfileId(choices.below(program.action_profiles.len() as u32))
}

fn member(choices: &mut Choices<'_>, program: &Program) -> Entity {
    let profile = profile(choices, program);
    let member_id = 1 + choices.below(MEMBERS);
    member_of(choices, program, profile, member_id)
}

/// Makes a member of an action profile, with an action of some table that uses the profile.
fn member_of(
    choices: &mut Choices<'_>,
    program: &Program,
    profile: ActionProfileId,
    member_id: u32,
) -> Entity {
    let mut tables = program.tables.iter();
    let table = tables.position(|t| t.implementation == Some(profile));
    let call = table.map(|table| {
        let (action, args) = action(choices, program, TableId(table as u32));
        ActionCall { action, args }
    });
    Entity::ActionProfileMember {
        profile,
        member_id,
        call,
    }
}

fn group(choices: &mut Choices<'_>, program: &Program) -> Entity {
    let profile = profile(choices, program);
    let group_id = 1 + choices.below(MEMBERS);
    group_of(choices, profile, group_id)
}

fn group_of(choices: &mut Choices<'_>, profile: ActionProfileId, group_id: u32) -> Entity {
    let count = choices.below(MEMBERS);
    let first = choices.below(MEMBERS);
    let members = (0..count).map(|i| GroupMember {
        member_id: 1 + (first + i) % MEMBERS,
        weight: choices.below(4),
        watch_port: choices.one_in(3).then(|| choices.pick(&PORTS)),
    });
    Entity::ActionProfileGroup {
        profile,
        group_id,
        contents: GroupContents {
            members: members.collect(),
            max_size: 0,
        },
    }
}

fn value_set(choices: &mut Choices<'_>, program: &Program) -> Entity {
    let value_set = choices.below(program.value_sets.len() as u32);
    let widths = &program.value_sets[value_set as usize].widths;
    let count = choices.below(4);
    let member = |choices: &mut Choices<'_>| {
        let exact = |width: &u32| KeyMatch::Value(key_value(choices, *width));
        widths.iter().map(exact).collect()
    };
    Entity::ValueSet {
        value_set: ValueSetId(value_set),
        members: (0..count).map(|_| member(choices)).collect(),
    }
}

fn meter_config(choices: &mut Choices<'_>) -> MeterConfig {
    MeterConfig {
        cir: u64::from(choices.byte()),
        cburst: u64::from(choices.byte()),
        pir: 255,
        pburst: u64::from(choices.byte()),
    }
}

fn default_action(choices: &mut Choices<'_>, program: &Program) -> Entity {
    let table = TableId(choices.below(program.tables.len() as u32));
    let (action, args) = action(choices, program, table);
    Entity::DefaultAction {
        table,
        action: Some(ActionCall { action, args }),
        note: None,
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

/// Returns an update in which arguments of its action are replaced by values that the dialect chooses for the
/// parameters' names.
pub(crate) fn in_dialect(
    choices: &mut Choices<'_>,
    program: &Program,
    dialect: &Dialect,
    mut update: Update,
) -> Update {
    let call = match &mut update.entity {
        Entity::TableEntry { entry, .. } => match &mut entry.action {
            EntryAction::Call(call) => call,
            EntryAction::Target(_) | EntryAction::Keep => return update,
        },
        Entity::DefaultAction {
            action: Some(call), ..
        } => call,
        _ => return update,
    };
    let params = &program.actions[call.action.index()].params;
    for (param, argument) in params.iter().zip(&mut call.args) {
        if let Some(value) = (dialect.param)(choices, &param.name) {
            *argument = Bits::from_u64(64, value).resize(argument.width());
        }
    }
    update
}

/// Chooses a value of `width` bits for an argument or a field, often one with a meaning: an address, a port or a
/// small number.
fn value(choices: &mut Choices<'_>, width: u32) -> Bits {
    match width {
        32 if choices.one_in(4) => Bits::from_u64(32, u64::from(choices.pick(&ADDRESSES))),
        9 => Bits::from_u64(9, u64::from(choices.pick(&PORTS))),
        12 if !choices.one_in(4) => Bits::from_u64(12, u64::from(choices.below(3))),
        16 if choices.one_in(2) => Bits::from_u64(16, choices.pick(&[1500, 60])),
        16.. if !choices.one_in(4) => Bits::from_u64(width, u64::from(choices.below(4))),
        _ => choices.bits(width),
    }
}

/// Chooses a value of `width` bits that packets often have in a field of this width.
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
    let first = key_value(choices, width);
    let second = match choices.below(6) {
        0 | 1 => Bits::zero(width),
        2 => Bits::ones(width),
        3 => Bits::prefix_mask(width, width / 2),
        4 => Bits::prefix_mask(width, choices.below(256) % (width + 1)),
        _ => key_value(choices, width),
    };
    key.kind.of_two(first, second).normal()
}
