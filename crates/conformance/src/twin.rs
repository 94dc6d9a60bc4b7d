//! Two switches of one program, one on each executor.

use crate::psa::Watched;
use engine::control::Update;
use engine::payload::Shared;
use engine::{Emission, Executor, Interpreter, Output, Packet, Switch, SwitchConfig, Time};
use ir::{CounterId, MeterId, Program, RegisterId, TableId};
use jit::JitError;
use std::fmt::Debug;
use std::sync::Arc;

/// The most copies that one packet may have; both switches discard further ones.
const MAX_COPIES: usize = 256;

/// Picoseconds in a microsecond.
const PS_PER_US: u64 = 1_000_000;

/// The most cells of an array that are compared.
const MAX_CELLS: u64 = 4096;

/// A program with both executors.
#[derive(Clone)]
pub struct Subject {
    /// The program.
    pub program: Arc<Program>,
    interpreter: Arc<dyn Executor>,
    /// The program that the second executor runs: the same one, or one that should mean the same.
    second_program: Arc<Program>,
    machine_code: Arc<dyn Executor>,
}

impl Subject {
    /// Compiles a verified program to machine code. `Err` says why that is impossible.
    pub fn new(program: Program) -> Result<Subject, JitError> {
        let program = Arc::new(program);
        Ok(Subject {
            interpreter: Arc::new(Interpreter::new(program.clone())),
            machine_code: Arc::new(jit::compile(program.clone())?),
            second_program: program.clone(),
            program,
        })
    }

    /// Returns a subject that compares this program with `other`, which should mean the same, both on the
    /// interpreter. Both must have the same objects and tables in the same order.
    pub fn beside(&self, other: Program) -> Subject {
        let other = Arc::new(other);
        Subject {
            machine_code: Arc::new(Interpreter::new(other.clone())),
            second_program: other,
            ..self.clone()
        }
    }

    /// Returns this subject, but with machine code whose fast path is watched, and the counts of how far it gets.
    pub fn watched(&self) -> (Subject, Arc<Watched>) {
        let watched = Arc::new(Watched::new(self.machine_code.clone()));
        let subject = Subject {
            machine_code: watched.clone(),
            ..self.clone()
        };
        (subject, watched)
    }

    /// Returns a subject with this program on the interpreter and the machine code of `other`. The two may
    /// differ: this tests whether the comparison finds differences.
    pub fn with_machine_code_of(&self, other: &Subject) -> Subject {
        Subject {
            machine_code: other.machine_code.clone(),
            ..self.clone()
        }
    }
}

/// Two switches that get the same packets and updates. Its methods fail if the switches behave differently.
pub struct Twin {
    interpreter: Switch,
    machine_code: Switch,
    now_ps: Time,
    /// The number of packets so far, which decides by which method the next one is processed.
    received: u64,
}

impl Twin {
    /// Creates two new switches, one for each executor.
    pub fn new(subject: &Subject) -> Twin {
        let config = SwitchConfig::default();
        let switch = |program: &Arc<Program>, executor: &Arc<dyn Executor>| {
            let mut switch = Switch::new(program.clone(), executor.clone(), config);
            switch.set_max_work(MAX_COPIES as u32);
            switch
        };
        Twin {
            interpreter: switch(&subject.program, &subject.interpreter),
            machine_code: switch(&subject.second_program, &subject.machine_code),
            now_ps: Time::ZERO,
            received: 0,
        }
    }

    /// Returns the program of the switch with the interpreter.
    pub fn program(&self) -> &Arc<Program> {
        self.interpreter.program()
    }

    /// Returns the number of packets that the switch with the interpreter has dropped so far, for any reason.
    pub fn drops(&self) -> u64 {
        self.interpreter.drops().values().sum()
    }

    /// Returns for each counter the sum of the packets in its first `cells` cells. A cell without packets counts as
    /// its bytes instead, since some counters count only bytes.
    pub fn counted(&self, cells: u64) -> Vec<u64> {
        let counters = self.program().counters.iter().enumerate();
        let sum = |(i, counter): (usize, &ir::Counter)| {
            let id = CounterId(i as u32);
            let cells = 0..counter.size.unwrap_or(0).min(cells);
            let data = cells.filter_map(|cell| self.interpreter.read_counter(id, cell).ok());
            data.map(|d| if d.packets == 0 { d.bytes } else { d.packets })
                .fold(0, u64::saturating_add)
        };
        counters.map(sum).collect()
    }

    /// Sets the clock of both switches, before the first packet or update.
    pub fn begin_at(&mut self, now_ps: Time) {
        self.now_ps = now_ps;
        self.interpreter.set_now_ps(now_ps);
        self.machine_code.set_now_ps(now_ps);
    }

    /// Advances the clock of both switches by `by_ps` picoseconds, for the packets and updates that follow.
    pub fn advance(&mut self, by_ps: u64) {
        self.now_ps += by_ps;
    }

    /// Applies an update to both switches, and returns whether they accepted it. `Err` describes how their answers
    /// differ.
    pub fn write(&mut self, update: Update) -> Result<bool, String> {
        let text = format!("{update:?}");
        let left = self.interpreter.write(update.clone());
        let right = self.machine_code.write(update);
        same(&text, &left, &right)?;
        Ok(left.is_ok())
    }

    /// Sets on both switches whether a port is up.
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        self.interpreter.set_port_up(port, up);
        self.machine_code.set_port_up(port, up);
    }

    /// Runs a packet on both switches, and returns the number of packets that left. `Err` describes the
    /// difference between the switches. Every third packet runs ingress and egress separately, as with a
    /// queue between them; for the others the machine code uses its faster path.
    pub fn receive(&mut self, port: u32, packet: &[u8]) -> Result<usize, String> {
        self.received += 1;
        let (now_ps, by_halves) = (self.now_ps, self.received.is_multiple_of(3));
        let run = |switch: &mut Switch, packet: Packet| {
            if by_halves {
                return run_by_halves(switch, at_once(now_ps), port, packet);
            }
            let mut out = Vec::new();
            switch.receive(now_ps, port, packet, &mut out);
            out
        };
        let (whole, sparse) = with_zeros(packet, self.received);
        let left = run(&mut self.interpreter, whole);
        let right = run(&mut self.machine_code, sparse);
        let what = || format!("packet {} at port {port}", hex(packet));
        self.compare_outputs(what, &left, &right)?;
        Ok(left.len())
    }

    /// Runs packets that arrive together: one after the other on the interpreter, as one burst on the
    /// machine code. Returns the number of packets that left; `Err` describes the difference.
    pub fn receive_burst(&mut self, packets: &[(u32, Vec<u8>)]) -> Result<usize, String> {
        let (mut left, mut right, mut burst) = (Vec::new(), Vec::new(), Vec::new());
        for (port, packet) in packets {
            let (whole, sparse) = with_zeros(packet, burst.len() as u64);
            (self.interpreter).receive(self.now_ps, *port, whole, &mut left);
            burst.push((*port, sparse));
        }
        (self.machine_code).receive_burst(self.now_ps, &mut burst, &mut right);
        let what = || {
            let lines = packets
                .iter()
                .map(|(port, p)| format!("\n  {port}: {}", hex(p)));
            format!("a burst of{}", lines.collect::<String>())
        };
        self.compare_outputs(what, &left, &right)?;
        Ok(left.len())
    }

    fn compare_outputs(
        &self,
        what: impl Fn() -> String,
        left: &[Output],
        right: &[Output],
    ) -> Result<(), String> {
        if left != right {
            same(&what(), &outputs(left), &outputs(right))?;
        }
        let (left, right) = (self.interpreter.drops(), self.machine_code.drops());
        if left != right {
            same(&what(), &left, &right)?;
        }
        Ok(())
    }

    /// Compares all state that packets change (drops, counters, registers, ...) between the switches, and removes the
    /// waiting digests from both. `Err` describes the difference.
    pub fn compare_state(&mut self) -> Result<(), String> {
        let program = self.program().clone();
        let (left, right) = (&self.interpreter, &self.machine_code);
        same("drops", &left.drops(), &right.drops())?;
        let range = |s: &Switch| s.runtime().out_of_range();
        same("accesses out of range", &range(left), &range(right))?;
        for (i, table) in program.tables.iter().enumerate() {
            let id = TableId(i as u32);
            same(&table.name, &left.read_entries(id), &right.read_entries(id))?;
            same(
                &table.name,
                &left.default_action(id),
                &right.default_action(id),
            )?;
        }
        for (i, register) in program.registers.iter().enumerate() {
            let id = RegisterId(i as u32);
            for cell in 0..register.size.min(MAX_CELLS) {
                let (l, r) = (left.read_register(id, cell), right.read_register(id, cell));
                same(&format!("{}[{cell}]", register.name), &l, &r)?;
            }
        }
        for (i, counter) in program.counters.iter().enumerate() {
            let id = CounterId(i as u32);
            for cell in 0..counter.size.unwrap_or(0).min(MAX_CELLS) {
                let (l, r) = (left.read_counter(id, cell), right.read_counter(id, cell));
                same(&format!("{}[{cell}]", counter.name), &l, &r)?;
            }
        }
        for (i, meter) in program.meters.iter().enumerate() {
            let id = MeterId(i as u32);
            for cell in 0..meter.size.unwrap_or(0).min(MAX_CELLS) {
                let (l, r) = (left.read_meter(id, cell), right.read_meter(id, cell));
                same(&format!("{}[{cell}]", meter.name), &l, &r)?;
            }
        }
        let now_ps = self.now_ps;
        let left = self.interpreter.take_digests(now_ps);
        same("digests", &left, &self.machine_code.take_digests(now_ps))
    }
}

fn same<T: PartialEq + Debug>(what: &str, left: &T, right: &T) -> Result<(), String> {
    if left == right {
        return Ok(());
    }
    Err(format!(
        "{what}:\n  interpreter  {left:?}\n  machine code {right:?}"
    ))
}

fn outputs(outputs: &[Output]) -> Vec<String> {
    let line = |o: &Output| format!("port {}: {}", o.port, hex(&o.packet.bytes()));
    outputs.iter().map(line).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns a packet with 0, 1, 30 or 400 zeros appended, as `number` selects, in two forms: with all bytes stored,
/// and with the zeros as shared bytes that are not stored.
fn with_zeros(packet: &[u8], number: u64) -> (Packet, Packet) {
    let zeros = [0, 1, 30, 400][(number % 4) as usize];
    let mut sparse = Packet::default();
    sparse.copy_with_rest(packet, Shared::zeros(zeros));
    (Packet::new(&sparse.bytes()), sparse)
}

/// The time of a packet's arrival, and its delay and queue between ingress and egress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// The time of ingress, in microseconds.
    pub(crate) arrives_us: u64,
    /// The time between ingress and egress, in microseconds.
    pub(crate) stays_us: u64,
    /// The number of packets in the queue, both when it is enqueued and when it leaves the queue.
    pub(crate) queue: u32,
}

/// Returns the times of a packet that arrives at `now_ps` and goes to egress at once, through an empty queue.
fn at_once(now_ps: Time) -> Passage {
    Passage {
        arrives_us: now_ps.us(),
        stays_us: 0,
        queue: 0,
    }
}

/// Runs ingress and egress of a packet at separate times, and returns the packets that leave. Stops a
/// packet that multiplies endlessly after `MAX_COPIES` copies.
pub(crate) fn run_by_halves(
    switch: &mut Switch,
    passage: Passage,
    port: u32,
    packet: Packet,
) -> Vec<Output> {
    let arrives_ps = Time::from_ps(u128::from(passage.arrives_us) * u128::from(PS_PER_US));
    let leaves_ps = arrives_ps + passage.stays_us * PS_PER_US;
    let mut copies = Vec::new();
    switch.ingress(arrives_ps, port, packet, &mut copies);
    let mut out = Vec::new();
    let mut emissions = Vec::new();
    let mut done = 0;
    while !copies.is_empty() && done < MAX_COPIES {
        done += 1;
        let mut copy = copies.remove(0);
        copy.set_enqueued(arrives_ps, passage.queue);
        switch.egress(leaves_ps, copy, passage.queue, &mut emissions);
        for emission in emissions.drain(..) {
            match emission {
                Emission::Output(output) => out.push(output),
                Emission::Enqueued(copy) => copies.push(copy),
                Emission::Recirculated(packet) => {
                    switch.recirculate(leaves_ps, packet, &mut copies);
                }
            }
        }
    }
    out
}
