//! The machine code of a header stack: each element adds the same amount, whatever the stack's size.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

use jit::CompileStats;
use std::sync::Arc;

/// Writes a P4 program for source routing over a header stack of `size` elements, which the parser extracts in a loop,
/// ingress pops and egress pushes.
fn program(size: usize, ingress: &str) -> String {
    format!(
        r#"
        #include <core.p4>
        #include <v1model.p4>
        header count_t {{ bit<8> count; }}
        header hop_t {{ bit<7> more; bit<9> port; bit<32> data; }}
        struct headers_t {{ count_t count; hop_t[{size}] hops; }}
        struct meta_t {{ bit<8> left; bit<8> index; bit<32> sum; }}
        parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
            state start {{
                packet.extract(hdr.count);
                meta.left = hdr.count.count;
                transition select(meta.left) {{ 0: accept; default: hop; }}
            }}
            state hop {{
                packet.extract(hdr.hops.next);
                meta.left = meta.left - 1;
                transition select(meta.left) {{ 0: accept; default: hop; }}
            }}
        }}
        control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
        control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
            apply {{
                if (hdr.hops[0].isValid()) {{
                    sm.egress_spec = hdr.hops[0].port;
                    {ingress}
                    hdr.hops.pop_front(1);
                }}
            }}
        }}
        control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
            action push(bit<32> data) {{
                hdr.hops.push_front(1);
                hdr.hops[0].setValid();
                hdr.hops[0].data = data;
            }}
            table pushed {{ key = {{ sm.egress_port: exact; }} actions = {{ push; NoAction; }} default_action = NoAction; }}
            apply {{ pushed.apply(); }}
        }}
        control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
        control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
        V1Switch(P(), V(), I(), E(), C(), D()) main;
        "#
    )
}

fn stats(size: usize, ingress: &str) -> CompileStats {
    let text = program(size, ingress);
    let outcome = compile::compile_text(&text, "stack.p4", &compile::Options::default());
    let Some(compiled) = &outcome.compiled else {
        panic!("{}", outcome.render());
    };
    let executor = jit::compile(Arc::new(compiled.program.clone())).expect("machine code");
    executor.stats()
}

/// Asserts that twice as many stack elements cost little more than twice as much in code bytes, instructions and the
/// other sizes of what the code generator works on.
fn assert_linear(ingress: &str) {
    let (small, large) = (stats(64, ingress), stats(128, ingress));
    println!("64: {small:?}\n128: {large:?}");
    for (what, small, large) in [
        ("bytes", small.code_bytes, large.code_bytes),
        ("instructions", small.instructions, large.instructions),
        ("merged", small.merged, large.merged),
    ] {
        assert!(10 * large <= 23 * small, "{what}: {small}, then {large}");
    }
    let (merged, instructions) = (large.merged, large.instructions);
    assert!(merged <= instructions, "{merged} beside {instructions}");
}

#[test]
fn a_stack_costs_as_much_as_it_has_elements() {
    assert_linear("");
}

#[test]
fn an_element_at_an_index_costs_no_choice_among_all() {
    let access = r#"
        meta.index = meta.index + 1;
        if (hdr.hops[meta.index].isValid()) {
            meta.sum = meta.sum + hdr.hops[meta.index].data;
            hdr.hops[meta.index].data = meta.sum;
        }"#;
    assert_linear(&access.repeat(8));
    // The cost of eight more accesses does not depend on the number of elements (with so many that nothing is specialised).
    let cost = |size| {
        let count = |times| stats(size, &access.repeat(times)).instructions;
        count(32) - count(24)
    };
    let (small, large) = (cost(48), cost(96));
    println!("eight accesses: {small} instructions with 48 elements, {large} with 96");
    assert!(10 * large <= 11 * small, "{small}, then {large}");
}
