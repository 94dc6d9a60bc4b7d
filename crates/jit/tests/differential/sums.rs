//! Checksums verified and then updated: the second sum is made from the first where that is the same, and only there.

use crate::pair::Pair;
use ir::arbitrary::Rng;
use ir::text::preamble;

/// Standard metadata is `%0` to `%15`, a header `%16` with the fields from `%20` on, of these widths; the checksum is `%28`.
const WIDTHS: [u32; 12] = [4, 4, 8, 16, 16, 3, 13, 8, 8, 16, 32, 32];
const SUM: usize = 9;

fn list(fields: &[usize]) -> String {
    let names: Vec<String> = fields.iter().map(|f| format!("%{}", 20 + f)).collect();
    names.join(", ")
}

/// Removes, inserts or swaps a few of `fields` at random.
fn perturbed(mut fields: Vec<usize>, rng: &mut Rng) -> Vec<usize> {
    for _ in 0..rng.below(3) {
        let at = rng.below(fields.len() as u32) as usize;
        match rng.below(4) {
            0 => {
                fields.remove(at);
            }
            1 => fields.insert(at, rng.below(WIDTHS.len() as u32) as usize),
            _ => {
                let other = rng.below(fields.len() as u32) as usize;
                fields.swap(at, other);
            }
        }
        if fields.is_empty() {
            return vec![0, 1];
        }
    }
    fields
}

fn program(rng: &mut Rng) -> ir::Program {
    let all: Vec<usize> = (0..WIDTHS.len()).collect();
    let without: Vec<usize> = all.iter().copied().filter(|&f| f != SUM).collect();
    let first = match rng.below(4) {
        0 => perturbed(without, rng),
        1 => without[rng.below(3) as usize * 2..].to_vec(),
        _ => without,
    };
    let second = match rng.below(3) {
        0 => perturbed(first.clone(), rng),
        _ => first.clone(),
    };
    let mut assignments = String::new();
    for _ in 0..rng.below(4) {
        let field = rng.below(WIDTHS.len() as u32) as usize;
        let (slot, width) = (20 + field, WIDTHS[field]);
        let assignment = match rng.below(3) {
            0 => format!("assign %{slot} = {width}w1 "),
            1 => format!("assign %{slot} = {width}w0 "),
            _ => format!("assign %{slot} = sub(%{slot}, {width}w1) "),
        };
        assignments += &match rng.below(3) {
            0 => format!("if eq(%22, 8w1) {{ {assignment} }} "),
            1 => format!("if ne(%13, 1w1) {{ {assignment} }} "),
            _ => assignment,
        };
    }
    // Code that makes it uncertain that the first sum was made, or that the header is what it was.
    let (before, around) = match rng.below(8) {
        0 => ("if eq(%22, 8w1) { exit }", "if %16"),
        1 => ("", "if and(%16, eq(%22, 8w1))"),
        2 => ("block b0 { if eq(%22, 8w1) { break b0 }", "if %16"),
        _ => ("", "if %16"),
    };
    let close = if before.starts_with("block") { "}" } else { "" };
    let more = match rng.below(6) {
        0 => "set_invalid h0",
        1 => "if eq(%22, 8w0) { set_invalid h0 }",
        2 => "set_invalid h0 set_valid h0",
        _ => "",
    };
    let named = [("h0.$valid", 1), ("sum", 16), ("h1.$valid", 1), ("h1.f", 8)];
    let slots = named.into_iter().chain(WIDTHS.map(|width| ("h0.f", width)));
    let mut text = preamble("sums", slots);
    text += &format!(
        r#"
        header h0 "h0" valid %16 {{ {} }}
        header h1 "h1" valid %18 {{ %19 }}
        state s0 "start" {{ extract h1 select (%19) {{ case (8w0 & 8w1) s1 case (_) accept }} }}
        state s1 "more" {{ extract h0 goto accept }}
        control verify_checksum {{
          {before} {around} {{ hash %17 = csum16({}) if ne(%17, %{}) {{ assign %13 = 1w1 }} }} {close}
        }}
        control ingress {{ assign %1 = zext(%13, 9) {assignments} {more} }}
        control egress {{ }}
        control compute_checksum {{ if %16 {{ hash %{} = csum16({}) }} }}
        control deparser {{ emit h1 emit h0 }}
        "#,
        list(&all).replace(',', ""),
        list(&first),
        20 + SUM,
        20 + SUM,
        list(&second),
    );
    ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn verified_and_updated() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut pair = Pair::new(program(&mut rng), seed);
        for i in 0..24 {
            let mut bytes: Vec<u8> = (0..25).map(|_| rng.below(256) as u8).collect();
            match i % 6 {
                0 => bytes.fill(0),
                1 => bytes[1..].fill(0xff),
                2 => bytes[1..].fill(0),
                3 => bytes[2] = 1,
                _ => {}
            }
            bytes[0] &= if rng.one_in(5) { 0xff } else { 0xfe };
            // The right checksum, where all fields are summed up in order.
            if rng.one_in(2) {
                bytes[11..13].fill(0);
                let words = bytes[1..21]
                    .chunks(2)
                    .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
                let sum: u32 = words.sum();
                let sum = (sum & 0xffff) + (sum >> 16);
                let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
                bytes[11..13].copy_from_slice(&sum.to_be_bytes());
            }
            pair.receive(1, &bytes);
        }
    }
}
