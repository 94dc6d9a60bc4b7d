//! Random valid programs and packets for them, for tests of everything that consumes programs.
//!
//! A program is a function of its seed alone. Every program verifies, keeps the compiler's promise that invalid headers are
//! zero, and ends its loops soon, so that two executors may be compared on it. It makes no sense otherwise.

mod body;
mod rng;

use crate::*;
pub use body::{COMPARISONS, SAME_WIDTH, SHIFTS};
pub use rng::Rng;

/// Widths of values in bits, chosen to reach every case of an executor: below, at and above 8, 16, 32, 64 and
/// 128 bits, and well beyond.
const WIDTHS: [u32; 24] = [
    1, 1, 2, 3, 7, 8, 8, 9, 16, 16, 19, 31, 32, 32, 33, 48, 63, 64, 65, 100, 128, 129, 200, 320,
];

/// Widths of table and select keys in bits: mostly small ones, so that lookups hit.
const KEY_WIDTHS: [u32; 10] = [1, 2, 3, 4, 5, 8, 16, 32, 128, 130];

/// Generates a valid program of the first architecture, which depends only on `seed`.
pub fn program(seed: u64) -> Program {
    program_of(architecture::ALL[0], seed)
}

/// Generates a valid program of an architecture, which depends only on `seed`.
pub fn program_of(description: &'static Description, seed: u64) -> Program {
    let mut generator = Generator::new(description, seed);
    generator.storage();
    generator.objects();
    generator.actions();
    generator.tables();
    generator.direct_meter_reads();
    generator.parser();
    generator.blocks();
    generator.program
}

/// Generates the bytes of a packet, which depend only on `seed`: mostly up to 255, sometimes up to 1499, with
/// many small values.
pub fn packet(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let length = match rng.below(8) {
        0 => rng.below(16),
        1 => rng.below(1500),
        _ => rng.below(256),
    };
    (0..length)
        .map(|_| match rng.below(3) {
            0 => rng.below(4) as u8,
            _ => rng.next() as u8,
        })
        .collect()
}

struct Generator {
    rng: Rng,
    program: Program,
    /// Slots that may be assigned anywhere.
    scalars: Vec<SlotId>,
    /// The number of statements that may still be generated in the current body.
    budget: u32,
    next_label: u32,
}

/// The body in which a statement is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Parser,
    Checksum,
    Ingress,
    Egress,
    Deparser,
    Action,
}

impl Generator {
    fn new(description: &'static Description, seed: u64) -> Generator {
        Generator {
            rng: Rng::new(seed),
            program: Program {
                files: vec!["arbitrary.p4".into()],
                ..Program::empty(format!("arbitrary-{seed}"), description)
            },
            scalars: Vec::new(),
            budget: 0,
            next_label: 0,
        }
    }

    fn slot(&mut self, name: String, width: u32) -> SlotId {
        self.program.slots.push(Slot { name, width });
        SlotId(self.program.slots.len() as u32 - 1)
    }

    fn storage(&mut self) {
        for i in 0..6 + self.rng.below(6) {
            let width = self.rng.pick(&WIDTHS);
            let slot = self.slot(format!("meta.m{i}"), width);
            self.scalars.push(slot);
        }
        for i in 0..2 + self.rng.below(4) {
            self.header(i);
        }
        let bridged = self.program.architecture.description().bridged().count();
        let count = self.rng.below(3) as usize;
        for _ in 0..bridged + count {
            let slots = self.scalars.clone();
            let slots = slots.into_iter().filter(|_| self.rng.one_in(2)).collect();
            self.program.field_lists.push(FieldList { slots });
        }
    }

    fn header(&mut self, index: u32) {
        let name = format!("hdr.h{index}");
        let valid = self.slot(format!("{name}.$valid"), 1);
        let mut fields = Vec::new();
        let mut bits = 0;
        for i in 0..self.rng.below(5) {
            let width = self.rng.pick(&WIDTHS);
            bits += width;
            let slot = self.slot(format!("{name}.f{i}"), width);
            fields.push(Field {
                slot,
                varbit_length: None,
            });
        }
        if bits % 8 != 0 {
            let slot = self.slot(format!("{name}.pad"), 8 - bits % 8);
            fields.push(Field {
                slot,
                varbit_length: None,
            });
        }
        if self.rng.one_in(4) {
            let width = 8 * (1 + self.rng.below(40));
            let slot = self.slot(format!("{name}.options"), width);
            let length = self.slot(format!("{name}.options.$length"), 32);
            let at = self.rng.below(fields.len() as u32 + 1) as usize;
            let field = Field {
                slot,
                varbit_length: Some(length),
            };
            // Fields before a varbit end at a byte only by chance, which is what executors must cope with.
            fields.insert(at, field);
        }
        self.program.headers.push(Header {
            name,
            valid,
            fields,
        });
    }

    fn objects(&mut self) {
        for i in 0..1 + self.rng.below(3) {
            let (width, size) = (self.rng.pick(&WIDTHS), u64::from(self.rng.below(9)));
            let name = format!("r{i}");
            self.program.registers.push(Register {
                name,
                id: i + 1,
                width,
                size,
                port_state: false,
            });
        }
        for i in 0..2 {
            let unit =
                self.rng
                    .pick(&[CounterUnit::Packets, CounterUnit::Bytes, CounterUnit::Both]);
            let size = Some(u64::from(self.rng.below(9)));
            let (counter, meter) = (format!("c{i}"), format!("m{i}"));
            let bytes = self.rng.one_in(2);
            self.program.counters.push(Counter {
                name: counter,
                id: i + 1,
                unit,
                size,
            });
            self.program.meters.push(Meter {
                name: meter,
                id: i + 1,
                bytes,
                size,
            });
        }
        let widths = (0..1 + self.rng.below(3))
            .map(|_| self.rng.pick(&WIDTHS))
            .collect();
        let name = "digest".to_string();
        self.program.digests.push(Digest {
            name,
            id: 1,
            widths,
        });
        for i in 0..self.rng.below(3) {
            let fields = (1..2 + self.rng.below(3)).map(|id| ControllerField {
                id,
                width: self.rng.pick(&WIDTHS),
            });
            let fields = fields.collect();
            self.program.controller_headers.push(ControllerHeader {
                name: format!("packet_{i}"),
                id: i + 1,
                fields,
            });
        }
        for i in 0..self.rng.below(3) {
            let widths = (0..1 + self.rng.below(2))
                .map(|_| self.rng.pick(&KEY_WIDTHS))
                .collect();
            let name = format!("v{i}");
            self.program.value_sets.push(ValueSet {
                name,
                id: i + 1,
                widths,
                size: 4,
            });
        }
    }

    fn actions(&mut self) {
        let no_action = Action {
            name: "NoAction".into(),
            id: 1,
            params: Vec::new(),
            body: Vec::new(),
        };
        self.program.actions.push(no_action);
        for i in 1..3 + self.rng.below(3) {
            let mut params = Vec::new();
            for id in 1..=self.rng.below(4) {
                let width = self.rng.pick(&WIDTHS);
                let name = format!("p{id}");
                let slot = self.slot(format!("a{i}.{name}"), width);
                params.push(ActionParam { name, id, slot });
            }
            self.budget = 8;
            let body = self.statements(Place::Action, 0);
            let name = format!("a{i}");
            self.program.actions.push(Action {
                name,
                id: i + 1,
                params,
                body,
            });
        }
    }

    fn tables(&mut self) {
        for i in 0..1 + self.rng.below(4) {
            let keys = self.keys();
            let actions: Vec<_> = (0..self.program.actions.len() as u32)
                .filter(|&a| a == 0 || self.rng.one_in(2))
                .map(|a| TableAction {
                    action: ActionId(a),
                    scope: ActionScope::Both,
                })
                .collect();
            let default_action = self.call(&actions);
            let counter = self.program.counters.len() as u32;
            let direct_counter = self.rng.one_in(2).then_some(CounterId(counter));
            if direct_counter.is_some() {
                let (name, unit) = (format!("c{counter}"), CounterUnit::Both);
                self.program.counters.push(Counter {
                    name,
                    id: counter + 1,
                    unit,
                    size: None,
                });
            }
            let direct_meter = self.rng.one_in(3).then(|| self.direct_meter());
            let implementation = self.rng.one_in(4).then(|| self.action_profile());
            let mut table = Table {
                name: format!("t{i}"),
                id: i + 1,
                keys,
                actions,
                default_action,
                const_default_action: self.rng.one_in(4),
                entries: Vec::new(),
                const_entries: self.rng.one_in(4),
                size: 64,
                direct_counter,
                direct_meter,
                implementation,
                support_timeout: self.rng.one_in(4),
                hidden: self.rng.one_in(8),
            };
            match implementation {
                Some(profile) => self.selector_keys(&mut table, profile),
                None => self.entries(&mut table),
            }
            self.program.tables.push(table);
        }
    }

    fn direct_meter(&mut self) -> MeterId {
        let meter = self.program.meters.len() as u32;
        let bytes = self.rng.one_in(2);
        self.program.meters.push(Meter {
            name: format!("m{meter}"),
            id: meter + 1,
            bytes,
            size: None,
        });
        MeterId(meter)
    }

    fn action_profile(&mut self) -> ActionProfileId {
        use HashAlgorithm::*;
        let profile = self.program.action_profiles.len() as u32;
        let plain = self.rng.one_in(4);
        let selector = (!plain).then(|| Selector {
            algorithm: self.rng.pick(&[Crc32, Crc16, Identity, Csum16, Xor16]),
            width: 1 + self.rng.below(64),
            max_group_size: self.rng.pick(&[0, 8]),
            sum_of_members: self.rng.one_in(2),
        });
        self.program.action_profiles.push(ActionProfile {
            name: format!("p{profile}"),
            id: profile + 1,
            size: 64,
            selector,
        });
        ActionProfileId(profile)
    }

    /// Adds up to two key fields that are inputs of the selector's hash to a table with a key, if its action
    /// profile has a selector.
    fn selector_keys(&mut self, table: &mut Table, profile: ActionProfileId) {
        let profile = &self.program.action_profiles[profile.index()];
        if profile.selector.is_none() || table.keys.is_empty() {
            return;
        }
        for i in 0..self.rng.below(3) {
            table.keys.push(Key {
                name: format!("selector{i}"),
                id: 0,
                width: self.rng.pick(&KEY_WIDTHS),
                kind: MatchKind::Selector,
            });
        }
    }

    /// Inserts reads of direct meters: for each table with such a meter, the first of its actions that no
    /// other table has reads the meter.
    fn direct_meter_reads(&mut self) {
        let tables = self.program.tables.clone();
        for table in &tables {
            let Some(meter) = table.direct_meter else {
                continue;
            };
            let shared = |action: ActionId| {
                let all = tables.iter().flat_map(|t| &t.actions);
                all.filter(|a| a.action == action).count() > 1
            };
            let own = table.actions.iter().find(|a| !shared(a.action));
            if let (Some(own), Some(dst)) = (own, self.scalar_where(|w| w >= 2)) {
                let stmt = Stmt {
                    kind: StmtKind::DirectMeterRead { meter, dst },
                    loc: Loc::default(),
                };
                let body = &mut self.program.actions[own.action.index()].body;
                body.insert(0, stmt);
            }
        }
    }

    fn keys(&mut self) -> Vec<Key> {
        // Tables without priorities are the usual ones, so they are made more often.
        let plain = self.rng.one_in(2);
        let mut keys: Vec<Key> = Vec::new();
        for id in 1..=self.rng.below(4) {
            let has_prefix = keys.iter().any(|key| key.kind.is_prefix());
            let is_possible = |kind: &MatchKind| {
                kind.is_looked_up()
                    && !(plain && kind.has_priority())
                    && !(has_prefix && kind.is_prefix())
            };
            let kinds: Vec<MatchKind> = MatchKind::ALL.into_iter().filter(is_possible).collect();
            let kind = self.rng.pick(&kinds);
            let width = self.rng.pick(&KEY_WIDTHS);
            keys.push(Key {
                name: format!("k{id}"),
                id,
                width,
                kind,
            });
        }
        keys
    }

    fn call(&mut self, actions: &[TableAction]) -> ActionCall {
        let action = self.rng.pick(actions).action;
        let params = &self.program.actions[action.index()].params;
        let widths: Vec<_> = params
            .iter()
            .map(|p| self.program.slots[p.slot.index()].width)
            .collect();
        let args = widths.into_iter().map(|w| self.rng.bits(w)).collect();
        ActionCall { action, args }
    }

    fn entries(&mut self, table: &mut Table) {
        if table.keys.is_empty() {
            return;
        }
        let needs_priority = table.needs_priority();
        for _ in 0..self.rng.below(8) {
            let matches: Vec<_> = table.keys.iter().map(|k| self.key_match(k)).collect();
            if table.entries.iter().any(|e| e.matches == matches) {
                continue;
            }
            // No two alike: which of two entries of equal priority matches is nobody's promise.
            let priority = if needs_priority {
                100 - table.entries.len() as i32
            } else {
                0
            };
            let action = self.call(&table.actions);
            table.entries.push(ConstEntry {
                matches,
                priority,
                action,
                is_const: self.rng.one_in(4),
            });
        }
    }

    fn key_match(&mut self, key: &Key) -> KeyMatch {
        self.rng.key_match(key.kind, key.width)
    }

    fn ordered(&mut self, a: Bits, width: u32) -> (Bits, Bits) {
        let b = self.rng.bits(width);
        if a.ucmp(&b).is_le() { (a, b) } else { (b, a) }
    }

    fn parser(&mut self) {
        let count = 2 + self.rng.below(4);
        for i in 0..count {
            self.budget = 4;
            let mut body = Vec::new();
            if self.rng.below(4) > 0 {
                let header = self.rng.below(self.program.headers.len() as u32);
                body.push(self.extract(HeaderId(header)));
            }
            body.extend(self.statements(Place::Parser, 0));
            let transition = if self.rng.one_in(4) {
                Transition::Goto(self.target(i, count))
            } else {
                self.select(i, count)
            };
            let loc = self.loc();
            self.program.states.push(State {
                name: format!("s{i}"),
                body,
                transition,
                loc,
            });
        }
    }

    /// Chooses the target of a transition from the state `from` of `count`: mostly a later state, sometimes
    /// any, so that the parser loops, or acceptance or rejection.
    fn target(&mut self, from: u32, count: u32) -> Target {
        match self.rng.below(10) {
            0 => Target::State(StateId(self.rng.below(count))),
            1 => Target::Reject,
            2 | 3 => Target::Accept,
            _ if from + 1 < count => Target::State(StateId(self.rng.between(from + 1, count - 1))),
            _ => Target::Accept,
        }
    }

    fn select(&mut self, from: u32, count: u32) -> Transition {
        let set = self.rng.below(3);
        let widths = match self.program.value_sets.get(set as usize) {
            Some(value_set) => value_set.widths.clone(),
            None => (0..1 + self.rng.below(3))
                .map(|_| self.rng.pick(&KEY_WIDTHS))
                .collect(),
        };
        let is_set = (set as usize) < self.program.value_sets.len();
        let mut cases = Vec::new();
        for _ in 0..1 + self.rng.below(4) {
            let matches = if is_set && self.rng.one_in(3) {
                vec![KeySet::ValueSet(ValueSetId(set))]
            } else {
                widths.iter().map(|&w| self.key_set(w)).collect()
            };
            let target = self.target(from, count);
            cases.push(SelectCase { matches, target });
        }
        if self.rng.below(4) > 0 {
            let matches = vec![KeySet::Any; widths.len()];
            let target = self.target(from, count);
            cases.push(SelectCase { matches, target });
        }
        let keys = widths.iter().map(|&w| self.expr(w, 2)).collect();
        Transition::Select { keys, cases }
    }

    fn key_set(&mut self, width: u32) -> KeySet {
        let value = self.rng.small_bits(width);
        match self.rng.below(4) {
            0 => KeySet::Any,
            1 => {
                let (low, high) = self.ordered(value, width);
                KeySet::Range { low, high }
            }
            2 => KeySet::Mask {
                value,
                mask: Bits::ones(width),
            },
            _ => {
                let mask = self.rng.small_bits(width);
                KeySet::Mask {
                    value: value.and(&mask),
                    mask,
                }
            }
        }
    }

    fn blocks(&mut self) {
        for (id, stage) in self.program.architecture.description().blocks() {
            self.program.blocks[id.index()] = match stage.kind {
                // The parsers share the states, of which the last one always ends.
                BlockKind::Parser if id.index() > 0 => {
                    Block::Parser(StateId(self.program.states.len() as u32 - 1))
                }
                BlockKind::Parser => Block::Parser(StateId(0)),
                BlockKind::Checksums => Block::Control(self.block(Place::Checksum, 4)),
                BlockKind::Control if stage.pipeline == Pipeline::INGRESS => {
                    let mut body = self.block(Place::Ingress, 24);
                    self.decide(&mut body);
                    Block::Control(body)
                }
                BlockKind::Control => Block::Control(self.block(Place::Egress, 16)),
                BlockKind::Deparser => Block::Control(self.deparser()),
            };
        }
    }

    /// Inserts assignments to the slots that decide where a packet goes in front of `body`; otherwise nearly
    /// every packet would leave at port 0.
    fn decide(&mut self, body: &mut Vec<Stmt>) {
        let architecture = &self.program.architecture;
        let decisions = match architecture.forwarding() {
            Some(forwarding) => vec![forwarding.port],
            None => architecture.decisions(),
        };
        for dst in decisions {
            let value = self.expr(self.program.slots[dst.index()].width, 3);
            let kind = StmtKind::Assign { dst, value };
            let loc = self.loc();
            body.insert(0, Stmt { kind, loc });
        }
    }

    fn deparser(&mut self) -> Vec<Stmt> {
        let mut deparser = self.block(Place::Deparser, 4);
        for i in 0..self.program.headers.len() as u32 {
            let emit = Stmt {
                kind: StmtKind::Emit(HeaderId(i)),
                loc: self.loc(),
            };
            let at = self.rng.below(deparser.len() as u32 + 1) as usize;
            deparser.insert(at, emit);
        }
        deparser
    }

    fn block(&mut self, place: Place, budget: u32) -> Vec<Stmt> {
        self.budget = budget;
        self.statements(place, 0)
    }

    fn loc(&mut self) -> Loc {
        Loc {
            file: 0,
            line: self.rng.below(100),
        }
    }
}
