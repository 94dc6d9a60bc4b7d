//! Random statements and expressions.

use super::{Generator, Place};
use crate::*;

/// Binary operators whose operands and result have the same width.
pub const SAME_WIDTH: [BinaryOp; 12] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Mod,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::AddSat,
    BinaryOp::SubSat,
    BinaryOp::SAddSat,
    BinaryOp::SSubSat,
];

/// Shifts.
pub const SHIFTS: [BinaryOp; 3] = [BinaryOp::Shl, BinaryOp::Shr, BinaryOp::Sar];

/// Comparisons, whose results have one bit.
pub const COMPARISONS: [BinaryOp; 6] = [
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Ult,
    BinaryOp::Ule,
    BinaryOp::Slt,
    BinaryOp::Sle,
];

/// The largest width in bits of an intermediate value.
const MAX_WIDTH: u32 = 400;

/// The deepest nesting of statements.
const MAX_DEPTH: u32 = 4;

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

fn constant(width: u32, value: u64) -> Expr {
    Expr::Const(Bits::from_u64(width, value))
}

impl Generator {
    /// Generates an expression of `width` bits with at most `depth` levels of operators, besides one that
    /// adapts the width of a slot.
    pub(super) fn expr(&mut self, width: u32, depth: u32) -> Expr {
        if depth == 0 {
            return self.leaf(width);
        }
        let depth = depth - 1;
        match self.rng.below(12) {
            0 => {
                let op = self.rng.pick(&[UnaryOp::Not, UnaryOp::Neg]);
                Expr::Unary {
                    op,
                    a: boxed(self.expr(width, depth)),
                }
            }
            1 => {
                let op = self.rng.pick(&SHIFTS);
                let by = self.rng.pick(&[1, 3, 8, 16, 32, 64, 70, 130]);
                Expr::Binary {
                    op,
                    a: boxed(self.expr(width, depth)),
                    b: boxed(self.expr(by, depth)),
                }
            }
            2 => {
                let low = self.rng.below(MAX_WIDTH.saturating_sub(width).min(80) + 1);
                let from = width + low + self.rng.below(20);
                let a = boxed(self.expr(from, depth));
                Expr::Slice {
                    a,
                    high: low + width - 1,
                    low,
                }
            }
            3 if width >= 2 => {
                let low = self.rng.between(1, width - 1);
                Expr::Concat {
                    a: boxed(self.expr(width - low, depth)),
                    b: boxed(self.expr(low, depth)),
                }
            }
            4 if width >= 2 => {
                let from = self.rng.between(1, width - 1);
                let a = boxed(self.expr(from, depth));
                if self.rng.one_in(2) {
                    Expr::ZeroExtend { a, width }
                } else {
                    Expr::SignExtend { a, width }
                }
            }
            5 => Expr::Mux {
                cond: boxed(self.expr(1, depth)),
                then: boxed(self.expr(width, depth)),
                otherwise: boxed(self.expr(width, depth)),
            },
            6 | 7 if width == 1 => {
                let operands = self.any_width();
                self.binary(&COMPARISONS, operands, depth)
            }
            8 => self.leaf(width),
            _ => self.binary(&SAME_WIDTH, width, depth),
        }
    }

    fn binary(&mut self, ops: &[BinaryOp], width: u32, depth: u32) -> Expr {
        let op = self.rng.pick(ops);
        Expr::Binary {
            op,
            a: boxed(self.expr(width, depth)),
            b: boxed(self.expr(width, depth)),
        }
    }

    fn any_width(&mut self) -> u32 {
        self.rng.pick(&super::WIDTHS)
    }

    fn leaf(&mut self, width: u32) -> Expr {
        if self.rng.one_in(4) {
            return Expr::Const(self.rng.bits(width));
        }
        if width == 32 && self.rng.one_in(16) {
            return Expr::PacketLength;
        }
        let slots = &self.program.slots;
        let equal: Vec<u32> = (0..slots.len() as u32)
            .filter(|&i| slots[i as usize].width == width)
            .collect();
        if !equal.is_empty() && self.rng.below(4) > 0 {
            return Expr::Slot(SlotId(self.rng.pick(&equal)));
        }
        let slot = self.rng.below(self.program.slots.len() as u32);
        let from = self.program.slots[slot as usize].width;
        let a = boxed(Expr::Slot(SlotId(slot)));
        match from.cmp(&width) {
            std::cmp::Ordering::Equal => *a,
            std::cmp::Ordering::Less => Expr::ZeroExtend { a, width },
            std::cmp::Ordering::Greater => {
                let low = self.rng.below(from - width + 1);
                Expr::Slice {
                    a,
                    high: low + width - 1,
                    low,
                }
            }
        }
    }

    pub(super) fn statements(&mut self, place: Place, depth: u32) -> Vec<Stmt> {
        let mut body = Vec::new();
        for _ in 0..1 + self.rng.below(6) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            let kind = self.statement(place, depth);
            let loc = self.loc();
            body.push(Stmt { kind, loc });
        }
        body
    }

    fn statement(&mut self, place: Place, depth: u32) -> StmtKind {
        if depth < MAX_DEPTH && self.rng.below(3) == 0 {
            return self.nested(place, depth + 1);
        }
        match self.rng.below(12) {
            0 | 1 => self.header_write(),
            2 => self.header_validity(),
            3 | 4 => self.stateful(),
            5 => self.computation(place),
            6..=8 => self.of_place(place),
            _ => self.assign(),
        }
    }

    fn assign(&mut self) -> StmtKind {
        let dst = self.scalar();
        StmtKind::Assign {
            dst,
            value: self.expr(self.width(dst), 4),
        }
    }

    fn scalar(&mut self) -> SlotId {
        let scalars = self.scalars.clone();
        self.rng.pick(&scalars)
    }

    fn width(&self, slot: SlotId) -> u32 {
        self.program.slots[slot.index()].width
    }

    /// Chooses a random scalar slot for whose width in bits `good` returns true; `None` if there is none.
    pub(super) fn scalar_where(&mut self, good: impl Fn(u32) -> bool) -> Option<SlotId> {
        let scalars: Vec<_> = self
            .scalars
            .iter()
            .copied()
            .filter(|&s| good(self.width(s)))
            .collect();
        (!scalars.is_empty()).then(|| self.rng.pick(&scalars))
    }

    fn nested(&mut self, place: Place, depth: u32) -> StmtKind {
        match self.rng.below(6) {
            0 => self.switch(place, depth),
            1 => {
                let label = self.label();
                let mut body = self.statements(place, depth);
                let leave = self.leave(label);
                body.push(leave);
                let mut rest = self.statements(place, depth);
                body.append(&mut rest);
                StmtKind::Block { label, body }
            }
            2 => self.bounded_loop(place, depth),
            _ => StmtKind::If {
                cond: self.expr(1, 3),
                then: self.statements(place, depth),
                otherwise: if self.rng.one_in(2) {
                    self.statements(place, depth)
                } else {
                    Vec::new()
                },
            },
        }
    }

    fn label(&mut self) -> LabelId {
        self.next_label += 1;
        LabelId(self.next_label - 1)
    }

    /// Generates the statement `if (cond) break label` with a random condition.
    fn leave(&mut self, label: LabelId) -> Stmt {
        let loc = self.loc();
        let then = vec![Stmt {
            kind: StmtKind::Break(label),
            loc,
        }];
        let cond = self.expr(1, 2);
        Stmt {
            kind: StmtKind::If {
                cond,
                then,
                otherwise: Vec::new(),
            },
            loc,
        }
    }

    fn switch(&mut self, place: Place, depth: u32) -> StmtKind {
        let width = self.rng.pick(&super::KEY_WIDTHS);
        let mut seen: Vec<Bits> = Vec::new();
        let mut cases = Vec::new();
        for _ in 0..self.rng.below(4) {
            let mut values = Vec::new();
            for _ in 0..1 + self.rng.below(2) {
                let value = self.rng.small_bits(width);
                if !seen.contains(&value) {
                    seen.push(value.clone());
                    values.push(value);
                }
            }
            if !values.is_empty() {
                cases.push((values, self.statements(place, depth)));
            }
        }
        let value = self.expr(width, 2);
        StmtKind::Switch {
            value,
            cases,
            default: self.statements(place, depth),
        }
    }

    /// Generates a loop that ends after at most four rounds, by a counter that no other statement writes.
    fn bounded_loop(&mut self, place: Place, depth: u32) -> StmtKind {
        let label = self.label();
        let counter = self.slot(format!("loop{}", label.0), 8);
        let rounds = u64::from(self.rng.below(5));
        let read = || boxed(Expr::Slot(counter));
        let loc = self.loc();
        let stmt = |kind| Stmt { kind, loc };
        let limit = Expr::Binary {
            op: BinaryOp::Ule,
            a: boxed(constant(8, rounds)),
            b: read(),
        };
        let stop = StmtKind::If {
            cond: limit,
            then: vec![stmt(StmtKind::Break(label))],
            otherwise: Vec::new(),
        };
        let next = Expr::Binary {
            op: BinaryOp::Add,
            a: read(),
            b: boxed(constant(8, 1)),
        };
        let mut body = vec![
            stmt(stop),
            stmt(StmtKind::Assign {
                dst: counter,
                value: next,
            }),
        ];
        body.extend(self.statements(place, depth));
        if self.rng.one_in(2) {
            let leave = self.leave(label);
            body.push(leave);
        }
        StmtKind::Loop { label, body }
    }

    fn any_header(&mut self) -> HeaderId {
        HeaderId(self.rng.below(self.program.headers.len() as u32))
    }

    /// Generates a write to a header field, inside an `if` that tests the header's validity, as the compiler
    /// does. Generates another assignment if the header has no field but varbits.
    fn header_write(&mut self) -> StmtKind {
        let header = self.any_header();
        let header = &self.program.headers[header.index()];
        let valid = header.valid;
        let fields: Vec<_> = header
            .fields
            .iter()
            .filter(|f| f.varbit_length.is_none())
            .map(|f| f.slot)
            .collect();
        if fields.is_empty() {
            return self.assign();
        }
        let dst = self.rng.pick(&fields);
        let value = self.expr(self.width(dst), 3);
        let loc = self.loc();
        StmtKind::If {
            cond: Expr::Slot(valid),
            then: vec![Stmt {
                kind: StmtKind::Assign { dst, value },
                loc,
            }],
            otherwise: Vec::new(),
        }
    }

    fn header_validity(&mut self) -> StmtKind {
        let header = self.any_header();
        if self.rng.one_in(3) {
            StmtKind::SetInvalid(header)
        } else {
            StmtKind::SetValid(header)
        }
    }

    /// Generates an expression of 32 bits for the index of a cell, mostly below 8, so that it is within the
    /// array.
    fn index(&mut self) -> Expr {
        let index = self.expr(3, 1);
        match self.rng.below(8) {
            0 => self.expr(32, 2),
            _ => Expr::ZeroExtend {
                a: boxed(index),
                width: 32,
            },
        }
    }

    fn stateful(&mut self) -> StmtKind {
        let register = self.rng.below(self.program.registers.len() as u32);
        let width = self.program.registers[register as usize].width;
        let register = RegisterId(register);
        let index = self.index();
        match self.rng.below(4) {
            0 => match self.scalar_where(|w| w == width) {
                Some(dst) => StmtKind::RegisterRead {
                    dst,
                    register,
                    index,
                },
                None => self.assign(),
            },
            1 => StmtKind::RegisterWrite {
                register,
                index,
                value: self.expr(width, 3),
            },
            2 => StmtKind::Count {
                counter: CounterId(self.rng.below(2)),
                index,
            },
            _ => match self.scalar_where(|w| w >= 2) {
                Some(dst) => StmtKind::MeterExecute {
                    meter: MeterId(self.rng.below(2)),
                    index,
                    dst,
                },
                None => self.assign(),
            },
        }
    }

    fn computation(&mut self, place: Place) -> StmtKind {
        if self.rng.one_in(4)
            && let Some(dst) = self.scalar_where(|w| w <= 64)
        {
            let width = self.width(dst);
            let (a, b) = (self.rng.bits(width), self.rng.bits(width));
            let (low, high) = if a.ucmp(&b).is_le() { (a, b) } else { (b, a) };
            return StmtKind::Random {
                dst,
                low: Expr::Const(low),
                high: Expr::Const(high),
            };
        }
        use HashAlgorithm::*;
        let mut data = Vec::new();
        for _ in 0..self.rng.below(4) {
            let width = self.any_width();
            data.push(self.expr(width, 2));
        }
        StmtKind::Hash {
            dst: self.scalar(),
            algorithm: self.rng.pick(&[Crc32, Crc16, Identity, Csum16, Xor16]),
            data,
            payload: place != Place::Parser && self.rng.one_in(3),
        }
    }

    pub(super) fn extract(&mut self, header: HeaderId) -> Stmt {
        let fields = &self.program.headers[header.index()].fields;
        let varbit = fields.iter().find(|f| f.varbit_length.is_some());
        let max = varbit.map(|f| self.width(f.slot));
        let varbit_length = max.map(|max| match self.rng.below(4) {
            // May be too long or no whole bytes.
            0 => self.expr(32, 1),
            _ => constant(32, u64::from(8 * self.rng.below(max / 8 + 1))),
        });
        Stmt {
            kind: StmtKind::Extract {
                header,
                varbit_length,
            },
            loc: self.loc(),
        }
    }

    /// Generates a statement for the body `place`: often one of a kind that is allowed there but not
    /// everywhere, else one that is allowed everywhere.
    fn of_place(&mut self, place: Place) -> StmtKind {
        match place {
            Place::Parser => self.of_parser(),
            Place::Ingress | Place::Egress => self.of_pipeline(place),
            Place::Action => self.of_action(),
            Place::Checksum | Place::Deparser => match self.rng.below(6) {
                0 => StmtKind::Exit,
                1 => self.log(),
                _ => self.assign(),
            },
        }
    }

    fn of_parser(&mut self) -> StmtKind {
        match self.rng.below(10) {
            0..=3 => {
                let header = self.any_header();
                self.extract(header).kind
            }
            4..=6 => StmtKind::Lookahead {
                dst: self.scalar(),
                offset: self.rng.below(100),
            },
            7 => StmtKind::Advance {
                bits: constant(32, u64::from(8 * self.rng.below(6))),
            },
            8 => StmtKind::Advance {
                bits: self.expr(32, 1),
            },
            _ => StmtKind::Reject {
                error: constant(ERROR_WIDTH, u64::from(self.rng.below(7))),
            },
        }
    }

    fn of_pipeline(&mut self, place: Place) -> StmtKind {
        let preserve = self.preserve();
        let ingress = place == Place::Ingress;
        match self.rng.below(12) {
            0 | 1 if self.deparses_between() => self.assign(),
            0 => {
                let kind = if ingress {
                    CloneKind::IngressToEgress
                } else {
                    CloneKind::EgressToEgress
                };
                StmtKind::Clone {
                    kind,
                    session: self.index(),
                    preserve,
                }
            }
            1 if ingress && self.rng.one_in(3) => StmtKind::Resubmit { preserve },
            1 if !ingress && self.rng.one_in(3) => StmtKind::Recirculate { preserve },
            2..=8 => self.apply(),
            _ => self.of_action(),
        }
    }

    fn deparses_between(&self) -> bool {
        self.program.architecture.description().deparses_between()
    }

    fn preserve(&mut self) -> Option<FieldListId> {
        let list = self.rng.below(self.program.field_lists.len() as u32 + 1);
        (list as usize != self.program.field_lists.len()).then_some(FieldListId(list))
    }

    fn apply(&mut self) -> StmtKind {
        let table = self.rng.below(self.program.tables.len() as u32);
        let widths: Vec<_> = self.program.tables[table as usize]
            .keys
            .iter()
            .map(|k| k.width)
            .collect();
        // Small values, so that lookups hit, and some others.
        let keys = widths.into_iter().map(|w| match self.rng.below(3) {
            0 if w > 3 => Expr::ZeroExtend {
                a: boxed(self.expr(3, 1)),
                width: w,
            },
            1 => Expr::Const(self.rng.small_bits(w)),
            _ => self.expr(w, 2),
        });
        StmtKind::Apply {
            table: TableId(table),
            keys: keys.collect(),
            hit: self.scalar_where(|w| w == 1),
            action_run: self.scalar_where(|w| w == 32),
        }
    }

    fn of_action(&mut self) -> StmtKind {
        match self.rng.below(10) {
            0 => StmtKind::Exit,
            1 if self.deparses_between() => self.assign(),
            1 => StmtKind::Truncate {
                length: self.index(),
            },
            2 => {
                let widths = self.program.digests[0].widths.clone();
                let values = widths.into_iter().map(|w| self.expr(w, 2)).collect();
                StmtKind::Digest {
                    digest: DigestId(0),
                    values,
                }
            }
            3 => self.log(),
            4 => {
                let cond = self.expr(1, 2);
                let rare = self.expr(1, 2);
                StmtKind::Assert {
                    cond: Expr::Binary {
                        op: BinaryOp::Or,
                        a: boxed(cond),
                        b: boxed(rare),
                    },
                }
            }
            _ => self.assign(),
        }
    }

    fn log(&mut self) -> StmtKind {
        let mut values = Vec::new();
        for _ in 0..self.rng.below(3) {
            let width = self.any_width();
            values.push(self.expr(width, 1));
        }
        let format = format!("say \"{}\"\t\\ \u{1}é", "{} ".repeat(values.len()));
        StmtKind::Log { format, values }
    }
}
