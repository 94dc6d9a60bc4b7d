//! Small programs for the tests of this room, in the IR's text form.
//!
//! All share slots, headers and objects; each test gives the bodies that matter to it.
//!
//! | what                | where                                                         |
//! |---------------------|---------------------------------------------------------------|
//! | standard metadata   | `%0`..`%15`, in declaration order (egress_spec `%1`, mcast_grp `%11`, ...) |
//! | `h0` tag, 3 bytes   | valid `%16`, kind `%17` (8), value `%18` (16)                  |
//! | `h1` extra, 4 bytes | valid `%19`, data `%20` (32)                                   |
//! | `h2` options        | valid `%21`, length `%22` (8), varbit `%23` (64) with length `%24`, end `%25` (8) |
//! | metadata            | kept `%26` (16), in field list `l0`; lost `%27` (16)            |
//! | locals              | `%28` (32), `%29` (9), `%30` (1), `%31` (32), `%32` (100), `%33` (32) |

use crate::Time;
use crate::{Interpreter, Output, Packet, Switch, SwitchConfig};
use ir::Program;
use std::sync::Arc;

const SLOTS: [(&str, u32); 18] = [
    ("hdr.tag.$valid", 1),
    ("hdr.tag.kind", 8),
    ("hdr.tag.value", 16),
    ("hdr.extra.$valid", 1),
    ("hdr.extra.data", 32),
    ("hdr.options.$valid", 1),
    ("hdr.options.length", 8),
    ("hdr.options.data", 64),
    ("hdr.options.data.$length", 32),
    ("hdr.options.end", 8),
    ("meta.kept", 16),
    ("meta.lost", 16),
    ("local32", 32),
    ("port", 9),
    ("flag", 1),
    ("which", 32),
    ("wide", 100),
    ("index", 32),
];

const STORAGE: &str = r#"
error 7 "Own"
header h0 "hdr.tag" valid %16 { %17 %18 }
header h1 "hdr.extra" valid %19 { %20 }
header h2 "hdr.options" valid %21 { %22 %23 length %24 %25 }
register r0 "narrow" id 1: 32 size 4
register r1 "wide" id 2: 100 size 2
register r2 "ports" id 3: 1 size 8 port_state
counter c0 "packets" id 1 both size 4
counter c1 "direct" id 2 both direct
counter c2 "selections" id 3 both direct
meter m0 "meter" id 1 packets size 2
meter m1 "direct_meter" id 2 bytes direct
digest d0 "learn" id 1 (16, 100)
value_set v0 "kinds" id 1 (8) size 2
action_profile p0 "profile" id 1 size 3
action_profile p1 "selector" id 2 size 8 selector crc16 : 16 max_group_size 6
field_list l0 (%26)
"#;

const OBJECTS: &str = r#"
action a0 "forward" id 1 (%29 "port" id 1) { assign %1 = %29 @0:10 }
action a1 "drop" id 2 () { assign %1 = 9w511 @0:11 assign %11 = 16w0 @0:11 }
action a2 "stop" id 3 () { exit @0:12 }
action a3 "set_wide" id 4 (%32 "wide" id 1, %26 "kept" id 2) { }
action a4 "paint" id 5 (%29 "port" id 1) { direct_meter_read %18 = m1 @0:13 assign %1 = %29 @0:14 }
table t0 "exact" id 1 {
  key "kind" id 1: 8 exact
  action a0 action a1 action a2 action a3
  default a1 ()
  size 4 direct_counter c1 support_timeout
}
table t1 "ternary" id 2 {
  key "value" id 1: 16 ternary
  action a0 table_only action a1 default_only
  default a1 ()
  entry (16w0x1200 & 16w0xff00) priority 2 a0 (9w7)
  size 0
}
table t2 "constant" id 3 {
  key "value" id 1: 16 lpm
  action a0
  default a0 (9w1) const_default_action
  entry (16w0x1200 / 8) a0 (9w2)
  entry (16w0x1234 / 16) a0 (9w3)
  const_entries size 10
}
table t3 "keyless" id 4 { action a0 action a1 default a0 (9w4) size 1 }
table t4 "mixed" id 5 {
  key "kind" id 1: 8 range
  key "value" id 2: 16 optional
  action a0 action a1
  default a1 ()
  size 100
}
table t5 "metered" id 6 {
  key "kind" id 1: 8 exact
  action a4
  default a4 (9w2)
  size 8 direct_meter m1
}
table t6 "profiled" id 7 {
  key "kind" id 1: 8 exact
  action a0 action a1
  default a0 (9w9)
  size 8 implementation p0
}
table t7 "selected" id 8 {
  key "kind" id 1: 8 exact
  key "value" id 0: 16 selector
  action a0 action a1 action a3 table_only
  default a0 (9w9)
  size 8 direct_counter c2 implementation p1
}
"#;

/// The bodies of a program.
#[derive(Clone, Copy)]
pub(crate) struct Bodies {
    pub states: &'static str,
    pub verify_checksum: &'static str,
    pub ingress: &'static str,
    pub egress: &'static str,
    pub compute_checksum: &'static str,
    pub deparser: &'static str,
}

/// A parser that takes the tag, and behind a tag of kind 0xee the extra header.
pub(crate) const TAG_PARSER: &str = r#"
state s0 "start" @0:1 {
  extract h0 @0:2
  select (%17) { case (8w0xee & 8w0xff) s1 case (_) accept }
}
state s1 "parse_extra" @0:3 { extract h1 @0:4 goto accept }
"#;

impl Default for Bodies {
    fn default() -> Bodies {
        Bodies {
            states: TAG_PARSER,
            verify_checksum: "",
            ingress: "assign %1 = 9w1 @0:20",
            egress: "",
            compute_checksum: "",
            deparser: "emit h0 @0:40 emit h1 @0:41 emit h2 @0:42",
        }
    }
}

impl Bodies {
    pub(crate) fn program(self) -> Arc<Program> {
        let text = format!(
            "{}{STORAGE} {OBJECTS} {} control verify_checksum {{ {} }} control ingress {{ {} }} \
             control egress {{ {} }} control compute_checksum {{ {} }} control deparser {{ {} }}",
            ir::text::preamble("test", SLOTS),
            self.states,
            self.verify_checksum,
            self.ingress,
            self.egress,
            self.compute_checksum,
            self.deparser
        );
        let program = ir::text::parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        ir::verify::verify(&program).unwrap_or_else(|e| panic!("{e:?}"));
        Arc::new(program)
    }

    pub(crate) fn switch(self) -> Switch {
        let program = self.program();
        let executor = Arc::new(Interpreter::new(program.clone()));
        Switch::new(program, executor, SwitchConfig::default())
    }
}

/// Makes a switch whose program has these bodies of the ingress and egress controls.
pub(crate) fn switch(ingress: &'static str, egress: &'static str) -> Switch {
    Bodies {
        ingress,
        egress,
        ..Bodies::default()
    }
    .switch()
}

/// Sends one packet to port 5, one millisecond after the start; returns the ports and bytes of the packets that leave.
pub(crate) fn send(switch: &mut Switch, bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut out = Vec::new();
    switch.receive(
        Time::from(1_000_000_000_u64),
        5,
        Packet::new(bytes),
        &mut out,
    );
    ports_and_bytes(out)
}

pub(crate) fn ports_and_bytes(out: Vec<Output>) -> Vec<(u32, Vec<u8>)> {
    out.into_iter()
        .map(|o| (o.port, o.packet.bytes().to_vec()))
        .collect()
}
