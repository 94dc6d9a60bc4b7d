//! Switches for tests and benchmarks, in IR text so that they need no compiler. A table forwards frames by destination MAC address;
//! unknown ones go to the controller.

use engine::{Executor, Switch, SwitchConfig};
use std::fmt::Write;
use std::sync::Arc;

const SLOTS: [u32; 5] = [1, 48, 48, 16, 9];

/// What a switch does besides forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each test uses some")]
pub enum Kind {
    /// The switch does nothing else.
    Plain,
    /// The switch writes the time of arrival into the source address.
    Timed,
    /// The switch sends a digest of what it does not know.
    Learning,
}

fn text(entries: &[(u64, u32)], kind: Kind) -> String {
    let mut text = ir::text::preamble("mac_switch", SLOTS.map(|width| ("s", width)));
    text += "header h0 \"hdr.ethernet\" valid %16 { %17 %18 %19 }\n";
    let (forward, unknown) = match kind {
        Kind::Plain => ("", ""),
        Kind::Timed => ("assign %18 = %9", ""),
        Kind::Learning => {
            text += "digest d0 \"unknown\" id 1 (48)\n";
            ("", "digest d0(%17)")
        }
    };
    writeln!(
        text,
        "action a0 \"forward\" id 1 (%20 \"port\" id 1) {{ assign %1 = %20 {forward} }}"
    )
    .unwrap();
    writeln!(
        text,
        "action a1 \"to_controller\" id 2 () {{ assign %1 = 9w510 {unknown} }}"
    )
    .unwrap();
    text += r#"
table t0 "stations" id 1 {
  key "hdr.ethernet.dst" id 1 : 48 exact
  action a0
  action a1
  default a1()
"#;
    for (mac, port) in entries {
        writeln!(text, "entry (48w{mac}) a0(9w{port})").unwrap();
    }
    text += r#"
  size 1024
}
state s0 "start" { extract h0 goto accept }
control verify_checksum { }
control ingress { apply t0(%17) }
control egress { }
control compute_checksum { }
control deparser { emit h0 }
"#;
    text
}

/// Builds a learning switch with an entry for each MAC address and port.
#[allow(dead_code, reason = "each test uses some")]
pub fn mac_switch(entries: &[(u64, u32)], seed: u64) -> Box<Switch> {
    switch_of(entries, Kind::Learning, true, seed)
}

/// Builds a switch with an entry for each MAC address and port, as machine code or interpreted.
pub fn switch_of(entries: &[(u64, u32)], kind: Kind, machine_code: bool, seed: u64) -> Box<Switch> {
    let program = ir::text::parse(&text(entries, kind)).expect("IR text");
    ir::verify::verify(&program).expect("a program");
    let program = Arc::new(program);
    let executor: Arc<dyn Executor> = match machine_code {
        true => Arc::new(jit::compile(program.clone()).expect("compiles")),
        false => Arc::new(engine::Interpreter::new(program.clone())),
    };
    let config = SwitchConfig {
        seed,
        ..SwitchConfig::default()
    };
    Box::new(Switch::new(program, executor, config))
}
