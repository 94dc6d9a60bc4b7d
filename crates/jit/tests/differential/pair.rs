//! Two switches that must not be told apart.

use engine::Time;
use engine::control::{
    CloneSession, Entity, Entry, EntryAction, GroupContents, GroupMember, MulticastGroup,
    Operation, Replica, Target, Update, WeightedAction,
};
use engine::meter::MeterConfig;
use engine::payload::Shared;
use engine::{Emission, Interpreter, Output, Packet, Switch, SwitchConfig};
use ir::arbitrary::Rng;
use ir::{
    ActionCall, ActionProfileId, ActionScope, CounterId, KeyMatch, MeterId, Program, RegisterId,
    TableId, ValueSetId,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Passes through egress that one packet may cause.
const MAX_COPIES: usize = 12;

/// One program on the interpreter and as machine code.
pub struct Pair {
    program: Arc<Program>,
    interpreted: Switch,
    compiled: Switch,
    now_ps: u64,
    received: u64,
    /// The machine code makes replicas.
    pub makes_replicas: bool,
    /// Of the code generator's intermediate form.
    pub instructions: usize,
    /// Said when they differ.
    what: String,
}

impl Pair {
    /// Makes two switches with the same program, one interpreted and one compiled, and empty tables.
    pub fn new(program: Program, seed: u64) -> Pair {
        let program = Arc::new(program);
        let config = SwitchConfig {
            seed,
            ..SwitchConfig::default()
        };
        let interpreter = Arc::new(Interpreter::new(program.clone()));
        let stats;
        let executor = match jit::compile(program.clone()) {
            Ok(mut executor) => {
                // Bursts are looked ahead whatever is in the tables.
                executor.set_large_table(0);
                stats = executor.stats();
                Arc::new(executor)
            }
            Err(error) => panic!("{}: {error}", program.name),
        };
        let mut pair = Pair {
            what: program.name.clone(),
            interpreted: Switch::new(program.clone(), interpreter, config),
            compiled: Switch::new(program.clone(), executor, config),
            program,
            now_ps: 0,
            received: 0,
            makes_replicas: stats.makes_replicas,
            instructions: stats.instructions,
        };
        for switch in [&mut pair.interpreted, &mut pair.compiled] {
            switch.set_max_work(MAX_COPIES as u32);
        }
        pair
    }

    /// Applies the same update to both switches, and asserts that they agree on the result. Returns true if it was
    /// accepted.
    pub fn write(&mut self, operation: Operation, entity: Entity) -> bool {
        let update = Update { operation, entity };
        let results = [
            self.interpreted.write(update.clone()),
            self.compiled.write(update),
        ];
        assert_eq!(results[0], results[1], "{}", self.what);
        results[0].is_ok()
    }

    /// Adds some random entries, multicast groups, clone sessions and other objects.
    pub fn configure(&mut self, rng: &mut Rng) {
        for table in 0..self.program.tables.len() as u32 {
            for _ in 0..4 {
                self.random_entry(TableId(table), rng);
            }
        }
        for id in 0..8 {
            let replicas: Vec<Replica> = (0..rng.below(5))
                .map(|i| Replica {
                    port: rng.below(8),
                    rid: i as u16,
                })
                .collect();
            self.write(
                Operation::Insert,
                Entity::MulticastGroup(MulticastGroup {
                    group_id: id + 1,
                    replicas: replicas.clone(),
                }),
            );
            if !replicas.is_empty() {
                self.write(
                    Operation::Insert,
                    Entity::CloneSession(CloneSession {
                        session_id: id,
                        replicas,
                        packet_length_bytes: if rng.one_in(2) { 0 } else { rng.below(80) },
                        class_of_service: rng.below(8) as u8,
                    }),
                );
            }
        }
        self.random_meters(rng);
        self.random_value_sets(rng);
    }

    fn random_meters(&mut self, rng: &mut Rng) {
        for (i, meter) in self.program.clone().meters.iter().enumerate() {
            for index in 0..meter.size.unwrap_or(0).min(8) {
                let config = random_meter(rng);
                self.write(
                    Operation::Modify,
                    Entity::Meter {
                        meter: MeterId(i as u32),
                        index: Some(index),
                        config: (!rng.one_in(3)).then_some(config),
                    },
                );
            }
        }
    }

    fn random_value_sets(&mut self, rng: &mut Rng) {
        for (i, set) in self.program.clone().value_sets.iter().enumerate() {
            let members = (0..rng.below(4))
                .map(|_| {
                    let widths = set.widths.iter();
                    widths
                        .map(|&w| KeyMatch::Value(rng.small_bits(w)))
                        .collect()
                })
                .collect();
            self.write(
                Operation::Modify,
                Entity::ValueSet {
                    value_set: ValueSetId(i as u32),
                    members,
                },
            );
        }
    }

    fn random_entry(&mut self, id: TableId, rng: &mut Rng) {
        let program = self.program.clone();
        let table = &program.tables[id.index()];
        if table.keys.is_empty() {
            return;
        }
        let usable: Vec<_> = (table.actions.iter())
            .filter(|a| a.scope != ActionScope::DefaultOnly)
            .map(|a| a.action)
            .collect();
        if usable.is_empty() {
            return;
        }
        let action = rng.pick(&usable);
        let params = &program.actions[action.index()].params;
        let args = (params.iter())
            .map(|p| rng.bits(program.slots[p.slot.index()].width))
            .collect();
        let call = ActionCall { action, args };
        let matches = table
            .keys
            .iter()
            .map(|k| rng.key_match(k.kind, k.width))
            .collect();
        let priority = if table.needs_priority() {
            1000 + rng.below(1 << 20) as i32
        } else {
            0
        };
        let mut entry = Entry::new(matches, priority, call.clone());
        if let Some(profile) = table.implementation {
            entry.action = EntryAction::Target(self.random_target(profile, call, rng));
        }
        if table.direct_meter.is_some() {
            entry.meter = (!rng.one_in(3)).then(|| random_meter(rng));
        }
        // Refusals (constant entries, one that exists) are alike, which is enough.
        self.write(Operation::Insert, Entity::TableEntry { table: id, entry });
    }

    /// Makes a random target of an action profile: a set of actions, a member, or a group with that member.
    fn random_target(
        &mut self,
        profile: ActionProfileId,
        call: ActionCall,
        rng: &mut Rng,
    ) -> Target {
        let selector = self.program.action_profiles[profile.index()].selector;
        if selector.is_some() && profile.index().is_multiple_of(2) {
            let action = WeightedAction {
                call,
                weight: 1 + rng.below(3),
                watch_port: rng.one_in(3).then(|| rng.below(4)),
            };
            return Target::OneShot(vec![action; 1 + rng.below(2) as usize]);
        }
        let member_id = 1 + rng.below(6);
        self.write(
            Operation::Insert,
            Entity::ActionProfileMember {
                profile,
                member_id,
                call: Some(call),
            },
        );
        let Some(selector) = selector else {
            return Target::Member(member_id);
        };
        let group_id = 1 + rng.below(3);
        let members = (1..=6)
            .filter(|_| rng.one_in(2))
            .map(|member_id| GroupMember {
                member_id,
                weight: 1 + member_id % 2,
                watch_port: (member_id > 3).then_some(member_id % 4),
            });
        let contents = GroupContents {
            members: members.collect(),
            max_size: selector.max_group_size,
        };
        for operation in [Operation::Insert, Operation::Modify] {
            let contents = contents.clone();
            self.write(
                operation,
                Entity::ActionProfileGroup {
                    profile,
                    group_id,
                    contents,
                },
            );
        }
        Target::Group(group_id)
    }

    /// Sets a random port down or up in both switches.
    pub fn random_port(&mut self, rng: &mut Rng) {
        let (port, up) = (rng.below(4), rng.one_in(2));
        for switch in [&mut self.interpreted, &mut self.compiled] {
            switch.set_port_up(port, up);
        }
    }

    /// Returns the number of packets that the compiled switch dropped for any reason.
    pub fn drops(&self) -> u64 {
        self.compiled.drops().values().sum()
    }

    /// Sends the same packet to both switches, compares what they send, and returns how many packets came out.
    pub fn receive(&mut self, port: u32, packet: &[u8]) -> u64 {
        self.now_ps += 1_234_567_890;
        let now_ps = self.now_ps;
        self.received += 1;
        // In turn half by half, and all at once, where machine code has its fast path; and in turn with a packet that is stored
        // as a whole, and one that is not.
        let by_halves = self.received.is_multiple_of(3);
        let (whole, sparse) = with_zeros(packet, self.received);
        let packets = match self.received % 4 {
            0 | 2 => [whole.clone(), whole],
            1 => [whole, sparse],
            _ => [sparse, whole],
        };
        let mut packets = packets.into_iter();
        let outputs = [&mut self.interpreted, &mut self.compiled].map(|switch| {
            let packet = packets.next().unwrap();
            if by_halves {
                return run_bounded(switch, now_ps, port, packet);
            }
            let mut out = Vec::new();
            switch.receive(Time::from(now_ps), port, packet, &mut out);
            out
        });
        let [interpreted, compiled] = &outputs;
        let simple = |out: &[Output]| -> Vec<(u32, Vec<u8>)> {
            out.iter()
                .map(|o| (o.port, o.packet.bytes().to_vec()))
                .collect()
        };
        if simple(interpreted) != simple(compiled)
            || self.interpreted.drops() != self.compiled.drops()
        {
            self.explain(port, packet, interpreted, compiled);
        }
        let digests =
            [&mut self.interpreted, &mut self.compiled].map(|s| s.take_digests(Time::ZERO));
        assert_eq!(digests[0], digests[1], "{}: digests", self.what);
        interpreted.len() as u64
    }

    /// Sends the same packets to both switches, one after the other to the interpreter and in one burst to machine
    /// code, compares the results, and returns how many packets came out.
    pub fn receive_burst(&mut self, packets: &[(u32, Vec<u8>)]) -> u64 {
        self.now_ps += 1_234_567_890;
        let mut outputs = [Vec::new(), Vec::new()];
        let mut burst = Vec::new();
        for (number, (port, packet)) in packets.iter().enumerate() {
            let (whole, sparse) = with_zeros(packet, number as u64);
            (self.interpreted).receive(Time::from(self.now_ps), *port, whole, &mut outputs[0]);
            burst.push((*port, sparse));
        }
        (self.compiled).receive_burst(Time::from(self.now_ps), &mut burst, &mut outputs[1]);
        assert!(burst.is_empty());
        let [interpreted, compiled] = outputs.map(|out| -> Vec<(u32, Vec<u8>)> {
            (out.iter())
                .map(|o| (o.port, o.packet.bytes().to_vec()))
                .collect()
        });
        assert_eq!(interpreted, compiled, "{}: burst", self.what);
        assert_eq!(self.interpreted.drops(), self.compiled.drops());
        let digests =
            [&mut self.interpreted, &mut self.compiled].map(|s| s.take_digests(Time::ZERO));
        assert_eq!(digests[0], digests[1], "{}: digests", self.what);
        compiled.len() as u64
    }

    fn explain(&self, port: u32, packet: &[u8], interpreted: &[Output], compiled: &[Output]) -> ! {
        let show = |out: &[Output]| -> Vec<String> {
            let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
            (out.iter())
                .map(|o| format!("port {} {}", o.port, hex(&o.packet.bytes())))
                .collect()
        };
        panic!(
            "{}: port {port}, {} bytes\ninterpreter: {:#?} {:?}\nmachine code: {:#?} {:?}",
            self.what,
            packet.len(),
            show(interpreted),
            self.interpreted.drops(),
            show(compiled),
            self.compiled.drops(),
        )
    }

    /// Asserts that registers, counters and all other state are the same in both switches.
    pub fn compare_objects(&self) {
        let (a, b) = (self.interpreted.runtime(), self.compiled.runtime());
        assert_eq!(a.out_of_range(), b.out_of_range(), "{}", self.what);
        for (i, register) in self.program.registers.iter().enumerate() {
            let id = RegisterId(i as u32);
            for index in 0..register.size.min(4096) {
                let cells = [a, b].map(|r| r.register_cell(id, index));
                assert_eq!(
                    cells[0], cells[1],
                    "{}: {}[{index}]",
                    self.what, register.name
                );
            }
        }
        for (i, counter) in self.program.counters.iter().enumerate() {
            let id = CounterId(i as u32);
            for index in 0..counter.size.unwrap_or(0).min(4096) {
                let cells = [a, b].map(|r| r.counter_cell(id, index));
                assert_eq!(
                    cells[0], cells[1],
                    "{}: {}[{index}]",
                    self.what, counter.name
                );
            }
        }
        for (i, table) in self.program.tables.iter().enumerate() {
            let tables = [a, b].map(|r| r.table(TableId(i as u32)));
            for entry in tables[0].entries() {
                let counters = tables.map(|t| (t.counter(entry), t.last_hit_ps(entry)));
                assert_eq!(counters[0], counters[1], "{}: {}", self.what, table.name);
            }
        }
    }
}

/// Makes the same packet twice, with a number of zeros behind it that depends on `number`: once stored as a whole,
/// once with zeros in shared memory.
fn with_zeros(packet: &[u8], number: u64) -> (Packet, Packet) {
    let zeros = [0, 3, 30, 400, 1][(number % 5) as usize];
    let mut sparse = Packet::EMPTY;
    sparse.copy_with_rest(packet, Shared::zeros(zeros));
    (Packet::new(&sparse.bytes()), sparse)
}

/// Does the work of [`Switch::receive`], one half after the other, but runs egress at most [`MAX_COPIES`] times:
/// random programs often clone clones.
fn run_bounded(switch: &mut Switch, now_ps: u64, port: u32, packet: Packet) -> Vec<Output> {
    let (mut out, mut emissions, mut enqueued) = (Vec::new(), Vec::new(), Vec::new());
    switch.ingress(Time::from(now_ps), port, packet, &mut enqueued);
    let mut queue = VecDeque::from(enqueued);
    for _ in 0..MAX_COPIES {
        let Some(copy) = queue.pop_front() else { break };
        switch.egress(Time::from(now_ps), copy, 0, &mut emissions);
        for emission in emissions.drain(..) {
            match emission {
                Emission::Output(output) => out.push(output),
                Emission::Enqueued(copy) => queue.push_back(copy),
                Emission::Recirculated(packet) => {
                    let mut enqueued = Vec::new();
                    switch.recirculate(Time::from(now_ps), packet, &mut enqueued);
                    queue.extend(enqueued);
                }
            }
        }
    }
    out
}

fn random_meter(rng: &mut Rng) -> MeterConfig {
    MeterConfig {
        cir: rng.below(100).into(),
        cburst: rng.below(1000).into(),
        pir: 100 + u64::from(rng.below(100)),
        pburst: rng.below(2000).into(),
    }
}
