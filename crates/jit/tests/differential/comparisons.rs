//! Comparisons with constants, of values that are in all the places that the code generator has for them: it decides those whose
//! result is certain, from as much of the value as it knows.

use crate::pair::Pair;
use ir::text::preamble;
use ir::{BinaryOp, Bits};

/// Widths around the borders of limbs.
const WIDTHS: [u32; 9] = [1, 8, 63, 64, 65, 128, 129, 200, 256];

const OPERATORS: [&str; 6] = ["eq", "ne", "ult", "ule", "slt", "sle"];

/// A field in the packet, one of a header that is not valid, metadata that nothing assigns, that is assigned a constant, and that is
/// assigned the field.
const VALUES: [&str; 5] = ["%17", "%22", "%24", "%25", "%26"];

/// Returns constants of `width` bits that differ in one limb only, or in the sign.
fn constants(width: u32) -> Vec<Bits> {
    let shifted = |value: &Bits, places: u32| {
        Bits::binary(BinaryOp::Shl, value, &Bits::from_u64(32, places.into()))
    };
    let (one, ones) = (Bits::from_u64(width, 1), Bits::ones(width));
    let mut constants = vec![Bits::zero(width), one.clone(), ones.clone()];
    for places in [63, 64, 128, width - 1] {
        constants.extend([shifted(&one, places), shifted(&ones, places)]);
    }
    constants.sort_by(Bits::ucmp);
    constants.dedup();
    constants
}

fn literal(bits: &Bits) -> String {
    let digits: String = (bits.to_be_bytes().iter())
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("{}w0x{digits}", bits.width())
}

/// Writes P4 statements that add a different number to a 64-bit sum for each comparison that holds, some behind an
/// `if`, some in an expression.
fn comparisons(values: &[&str], constants: &[Bits]) -> String {
    let mut text = String::new();
    let mut number = 0u64;
    for operator in OPERATORS {
        for value in values {
            for constant in constants.iter().map(literal) {
                for operands in [
                    format!("{value}, {constant}"),
                    format!("{constant}, {value}"),
                ] {
                    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    let again = number.rotate_left(32);
                    text += &format!(
                        "if {operator}({operands}) {{ assign %20 = xor(%20, 64w{number}) }}
                         assign %20 = xor(%20, mux({operator}({operands}), 64w{again}, 64w0))\n"
                    );
                }
            }
        }
    }
    text
}

fn program(width: u32, constants: &[Bits], known: &Bits) -> ir::Program {
    let pad = 8 - width % 8;
    let slots = [
        ("h.$valid", 1),
        ("h.x", width),
        ("h.pad", pad),
        ("sum.$valid", 1),
        ("sum.sum", 64),
        ("gone.$valid", 1),
        ("gone.x", width),
        ("gone.pad", pad),
        ("unassigned", width),
        ("constant", width),
        ("copied", width),
    ];
    let text = format!(
        r#"{}
        header h0 "h" valid %16 {{ %17 %18 }}
        header h1 "sum" valid %19 {{ %20 }}
        header h2 "gone" valid %21 {{ %22 %23 }}
        state s0 "start" {{ extract h0 set_valid h1 {} goto accept }}
        control verify_checksum {{ }}
        control ingress {{ assign %1 = 9w4 assign %25 = {} assign %26 = %17 {} }}
        control egress {{ }}
        control compute_checksum {{ }}
        control deparser {{ emit h1 emit h0 emit h2 }}
        "#,
        preamble("comparisons", slots),
        comparisons(&["%24", "%17"], constants),
        literal(known),
        comparisons(&VALUES, constants),
    );
    ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn comparisons_with_constants() {
    for width in WIDTHS {
        let constants = constants(width);
        for known in [&constants[0], &constants[constants.len() / 2]] {
            let mut pair = Pair::new(program(width, &constants, known), 1);
            let field = |value: &Bits| value.concat(&Bits::zero(8 - width % 8)).to_be_bytes();
            let packets: Vec<(u32, Vec<u8>)> = constants.iter().map(|c| (1, field(c))).collect();
            for (port, packet) in &packets {
                // Whole and by halves.
                for _ in 0..3 {
                    assert_eq!(pair.receive(*port, packet), 1);
                }
            }
            assert_eq!(pair.receive_burst(&packets), packets.len() as u64);
        }
    }
}
