//! Every operator at widths around limb borders, against `ir::Bits`.
//!
//! One program per width computes all operators of two slots that it finds in the state and leaves the results there.

use engine::Time;
use engine::runtime::Runtime;
use engine::{Executor, Intents, PacketContext};
use ir::arbitrary::{COMPARISONS, Rng, SAME_WIDTH, SHIFTS};
use ir::architecture::v1model;
use ir::*;
use std::sync::Arc;

const WIDTHS: [u32; 26] = [
    1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 191, 192, 193,
    256, 300, 600,
];

fn every_operator() -> impl Iterator<Item = BinaryOp> {
    SAME_WIDTH.into_iter().chain(SHIFTS).chain(COMPARISONS)
}

/// Draws a random value, often with long runs of ones.
fn bits(rng: &mut Rng, width: u32) -> Bits {
    let limbs: Vec<u64> = (0..width.div_ceil(64)).map(|_| rng.next()).collect();
    let any = Bits::from_limbs(width, &limbs);
    let shift = Bits::from_u64(32, rng.below(width).into());
    let one = Bits::from_u64(width, 1);
    match rng.below(9) {
        0 => Bits::zero(width),
        1 => Bits::ones(width),
        2 => one,
        3 => Bits::binary(BinaryOp::Shl, &one, &shift),
        4 => Bits::binary(BinaryOp::Shr, &Bits::ones(width), &shift),
        5 => Bits::binary(BinaryOp::Shr, &any, &shift),
        6 => Bits::binary(BinaryOp::Shl, &Bits::ones(width), &shift),
        _ => any,
    }
}

/// A program whose ingress assigns expressions over slots `inputs` to new slots.
struct Built {
    program: Program,
    inputs: Vec<SlotId>,
    expected: Vec<(SlotId, Expr)>,
}

fn empty_program() -> Program {
    let start = State {
        name: "start".into(),
        body: vec![],
        transition: Transition::Goto(Target::Accept),
        loc: Loc::default(),
    };
    Program {
        states: vec![start],
        ..Program::empty("test", &v1model::DESCRIPTION)
    }
}

impl Built {
    fn new(input_widths: &[u32]) -> Built {
        let mut built = Built {
            program: empty_program(),
            inputs: vec![],
            expected: vec![],
        };
        built.inputs = input_widths.iter().map(|&w| built.slot(w)).collect();
        built
    }

    fn slot(&mut self, width: u32) -> SlotId {
        self.program.slots.push(Slot {
            name: format!("s{}", self.program.slots.len()),
            width,
        });
        SlotId(self.program.slots.len() as u32 - 1)
    }

    fn input(&self, i: usize) -> Box<Expr> {
        Box::new(Expr::Slot(self.inputs[i]))
    }

    fn compute(&mut self, value: Expr) {
        let dst = self.slot(value.width(&self.program.slots));
        self.program.control_mut(v1model::INGRESS).push(Stmt {
            kind: StmtKind::Assign {
                dst,
                value: value.clone(),
            },
            loc: Loc::default(),
        });
        self.expected.push((dst, value));
    }

    fn binary(&mut self, op: BinaryOp, a: usize, b: usize) {
        let (a, b) = (self.input(a), self.input(b));
        self.compute(Expr::Binary { op, a, b });
    }

    /// Compiles the program, and compares all results of both executors for `rounds` random values of the inputs.
    fn check(mut self, rounds: usize, seed: u64) {
        let metadata = self.program.architecture.fields();
        let standard: Vec<SlotId> = metadata.map(|f| f.1).collect();
        let slots = (0..self.program.slots.len() as u32).map(SlotId);
        self.program.field_lists = vec![FieldList {
            slots: slots.filter(|s| !standard.contains(s)).collect(),
        }];
        let program = Arc::new(self.program);
        let executor = jit::compile(program.clone()).expect("compiles");
        let mut runtime = Runtime::new(program.clone(), 1);
        let layout = Layout::new(&program);
        let mut rng = Rng::new(seed);
        for round in 0..rounds {
            let mut state = vec![0; layout.limbs()];
            for &input in &self.inputs {
                let mut value = bits(&mut rng, program.slots[input.index()].width);
                // Shift amounts in range are rare in wide slots.
                if round % 3 == 0 && value.width() > 10 {
                    value = Bits::from_u64(value.width(), rng.below(700).into());
                }
                layout.set(&mut state, input, &value);
            }
            let before = state.clone();
            let packet = vec![0; rng.below(2000) as usize];
            executor.run(
                Pipeline::INGRESS,
                &mut PacketContext {
                    now_ps: Time::ZERO,
                    state: &mut state,
                    packet: &packet,
                    packet_len: packet.len(),
                    consumed: 0,
                    emitted: &mut Vec::new(),
                    runtime: &mut runtime,
                    intents: Intents::default(),
                    trace: None,
                },
            );
            for (slot, expr) in &self.expected {
                let wanted = evaluate(expr, &layout, &before, packet.len());
                let got = layout.get(&state, *slot);
                let inputs: Vec<_> = self
                    .inputs
                    .iter()
                    .map(|&i| layout.get(&before, i))
                    .collect();
                assert_eq!(got, wanted, "{expr:?} of {inputs:?}");
            }
        }
    }
}

fn evaluate(expr: &Expr, layout: &Layout, state: &[u64], packet: usize) -> Bits {
    let go = |e: &Expr| evaluate(e, layout, state, packet);
    match expr {
        Expr::Const(bits) => bits.clone(),
        Expr::Slot(slot) => layout.get(state, *slot),
        Expr::Unary { op, a } => Bits::unary(*op, &go(a)),
        Expr::Binary { op, a, b } => Bits::binary(*op, &go(a), &go(b)),
        Expr::Slice { a, high, low } => go(a).slice(*high, *low),
        Expr::Concat { a, b } => go(a).concat(&go(b)),
        Expr::ZeroExtend { a, width } => go(a).resize(*width),
        Expr::SignExtend { a, width } => go(a).sign_extend(*width),
        Expr::Mux {
            cond,
            then,
            otherwise,
        } => {
            if go(cond).is_zero() {
                go(otherwise)
            } else {
                go(then)
            }
        }
        Expr::PacketLength => Bits::from_u64(32, packet as u64),
    }
}

#[test]
fn binary_operators() {
    for width in WIDTHS {
        let mut built = Built::new(&[width, width]);
        for op in every_operator() {
            built.binary(op, 0, 1);
            // Equal operands, which random values never are.
            built.binary(op, 0, 0);
        }
        built.check(300, width.into());
    }
}

#[test]
fn operators_with_constants() {
    for width in WIDTHS {
        let mut rng = Rng::new(u64::from(width) << 8);
        let mut built = Built::new(&[width]);
        for op in every_operator() {
            for _ in 0..4 {
                let constant = Box::new(Expr::Const(bits(&mut rng, width)));
                let (a, b) = (built.input(0), constant.clone());
                built.compute(Expr::Binary { op, a, b });
                let (a, b) = (constant, built.input(0));
                built.compute(Expr::Binary { op, a, b });
            }
        }
        built.check(60, width.into());
    }
}

#[test]
fn shifts_by_amounts_of_other_widths() {
    for width in WIDTHS {
        for amount in [1, 3, 6, 7, 8, 16, 32, 64, 65, 130] {
            let mut built = Built::new(&[width, amount]);
            for op in [BinaryOp::Shl, BinaryOp::Shr, BinaryOp::Sar] {
                built.binary(op, 0, 1);
                for constant in [0, 1, 63, 64, 65, width - 1, width, width + 1, 1 << 20] {
                    let constant = Box::new(Expr::Const(Bits::from_u64(amount, constant.into())));
                    let (a, b) = (built.input(0), constant);
                    built.compute(Expr::Binary { op, a, b });
                }
            }
            built.check(40, u64::from(width) << 8 | u64::from(amount));
        }
    }
}

#[test]
fn unary_operators_slices_extensions_and_choices() {
    for width in WIDTHS {
        let mut rng = Rng::new(width.into());
        let mut built = Built::new(&[width, width, 1]);
        for op in [UnaryOp::Not, UnaryOp::Neg] {
            let a = built.input(0);
            built.compute(Expr::Unary { op, a });
        }
        for _ in 0..20 {
            let low = rng.below(width);
            let high = rng.between(low, width - 1);
            let a = built.input(0);
            built.compute(Expr::Slice { a, high, low });
        }
        for more in [1, 2, 30, 63, 64, 65, 200] {
            let width = width + more;
            let a = built.input(0);
            built.compute(Expr::ZeroExtend { a, width });
            let a = built.input(0);
            built.compute(Expr::SignExtend { a, width });
        }
        let (cond, then, otherwise) = (built.input(2), built.input(0), built.input(1));
        built.compute(Expr::Mux {
            cond,
            then,
            otherwise,
        });
        built.compute(Expr::PacketLength);
        built.check(60, width.into());
    }
}

#[test]
fn concatenations() {
    for a in WIDTHS {
        let mut built = Built::new(&[a, 1, 5, 32, 64, 77, 128]);
        for other in 1..7 {
            let (x, y) = (built.input(0), built.input(other));
            built.compute(Expr::Concat { a: x, b: y });
            let (x, y) = (built.input(other), built.input(0));
            built.compute(Expr::Concat { a: x, b: y });
        }
        built.check(60, a.into());
    }
}

#[test]
fn very_wide_values() {
    for width in [513, 1024, 2400] {
        let mut built = Built::new(&[width, width, 16]);
        for op in every_operator() {
            built.binary(op, 0, 1);
            built.binary(op, 0, 0);
        }
        for op in [BinaryOp::Shl, BinaryOp::Shr, BinaryOp::Sar] {
            built.binary(op, 0, 2);
        }
        let a = built.input(0);
        built.compute(Expr::Slice {
            a,
            high: width - 3,
            low: 130,
        });
        built.check(30, width.into());
    }
}

#[test]
fn values_of_the_largest_width() {
    let width = Bits::MAX_WIDTH;
    let mut built = Built::new(&[width, width, 32]);
    for op in [
        BinaryOp::Add,
        BinaryOp::SSubSat,
        BinaryOp::Xor,
        BinaryOp::Slt,
    ] {
        built.binary(op, 0, 1);
    }
    built.binary(BinaryOp::Sar, 0, 2);
    let a = built.input(0);
    built.compute(Expr::Slice {
        a,
        high: 40_000,
        low: 17,
    });
    built.check(10, 1);
}

#[test]
fn a_program_that_would_explode_is_refused() {
    // Many applications of a table with a large action.
    let mut built = Built::new(&[64]);
    for _ in 0..2000 {
        built.binary(BinaryOp::Add, 0, 0);
    }
    let mut program = built.program;
    let body = std::mem::take(program.control_mut(v1model::INGRESS));
    program.actions.push(Action {
        name: "a".into(),
        id: 1,
        params: vec![],
        body,
    });
    program.tables.push(Table {
        name: "t".into(),
        id: 1,
        keys: vec![],
        actions: vec![TableAction {
            action: ActionId(0),
            scope: ActionScope::Both,
        }],
        default_action: ActionCall {
            action: ActionId(0),
            args: vec![],
        },
        const_default_action: false,
        entries: vec![],
        const_entries: false,
        size: 0,
        direct_counter: None,
        direct_meter: None,
        implementation: None,
        support_timeout: false,
        hidden: false,
    });
    let apply = Stmt {
        kind: StmtKind::Apply {
            table: TableId(0),
            keys: vec![],
            hit: None,
            action_run: None,
        },
        loc: Loc::default(),
    };
    *program.control_mut(v1model::INGRESS) = vec![apply; 20_000];
    let refused = jit::compile(Arc::new(program)).map(|_| ());
    assert!(
        matches!(refused, Err(jit::JitError::Codegen(_))),
        "{refused:?}"
    );
}

#[test]
fn an_invalid_program_is_refused() {
    let mut program = empty_program();
    program.control_mut(v1model::INGRESS).push(Stmt {
        kind: StmtKind::SetValid(HeaderId(3)),
        loc: Loc::default(),
    });
    let refused = jit::compile(Arc::new(program)).map(|_| ());
    assert!(
        matches!(refused, Err(jit::JitError::Invalid(_))),
        "{refused:?}"
    );
}
