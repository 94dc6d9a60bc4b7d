//! A switch for tests, in IR text so that it needs no compiler: behind the Ethernet header, a tag selects the treatment of the
//! packet and returns its queue metadata.

use engine::control::{CloneSession, Entity, MulticastGroup, Operation, Replica, Update};
use engine::{Executor, Interpreter, Switch, SwitchConfig};
use std::fmt::Write;
use std::sync::Arc;

/// The packet goes to the port.
pub const FORWARD: u8 = 0;
/// The packet is cloned to session 1 after ingress.
pub const CLONE_INGRESS: u8 = 1;
/// The packet is cloned to session 1 after egress, if it is no clone.
pub const CLONE_EGRESS: u8 = 2;
/// The packet is recirculated once.
pub const RECIRCULATE: u8 = 3;
/// The packet goes to group 1.
pub const MULTICAST: u8 = 4;
/// The packet is dropped in egress.
pub const DROP: u8 = 5;
/// The packet is cloned to session 2 and dropped in egress.
pub const CLONE_FOR_EVER: u8 = 6;

/// Where the tag is, and its length.
const AT: usize = 14;
const BYTES: usize = 20;

/// The tag of a packet: what is to be done with it, and what the queue tells of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    pub kind: u8,
    pub port: u8,
    pub priority: u8,
    /// `instance_type`.
    pub instance: u8,
    pub enq_timestamp: u32,
    pub enq_qdepth: u32,
    pub deq_timedelta: u32,
    pub deq_qdepth: u32,
}

impl Tag {
    /// Builds a frame to everybody with this tag.
    pub fn frame(&self, size: usize) -> Vec<u8> {
        let mut frame = vec![0; size.max(AT + BYTES)];
        frame[..6].fill(0xff);
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame[AT..AT + 4].copy_from_slice(&[self.kind, self.port, self.priority, self.instance]);
        frame
    }

    /// Builds a frame to everybody with this tag, of IPv4's type.
    pub fn ipv4_frame(&self, size: usize) -> Vec<u8> {
        let mut frame = self.frame(size);
        frame[12..14].copy_from_slice(&[8, 0]);
        frame
    }

    /// Reads the tag of a frame.
    pub fn of(frame: &[u8]) -> Tag {
        let word = |at: usize| {
            let bytes = &frame[AT + at..AT + at + 4];
            u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        Tag {
            kind: frame[AT],
            port: frame[AT + 1],
            priority: frame[AT + 2],
            instance: frame[AT + 3],
            enq_timestamp: word(4),
            enq_qdepth: word(8),
            deq_timedelta: word(12),
            deq_qdepth: word(16),
        }
    }
}

/// Ethernet from %16 on, the tag from %20 on.
const SLOTS: [u32; 13] = [1, 48, 48, 16, 1, 8, 8, 8, 8, 32, 32, 32, 32];

fn text(reads_queues: bool) -> String {
    let mut text = ir::text::preamble("tagged_switch", SLOTS.map(|width| ("s", width)));
    let (priority, queues) = if reads_queues {
        (
            "assign %15 = slice(%23, 2, 0)",
            "assign %25 = %5 assign %26 = zext(%6, 32) assign %27 = %7 assign %28 = zext(%8, 32)",
        )
    } else {
        ("", "")
    };
    write!(
        text,
        r#"
header h0 "hdr.ethernet" valid %16 {{ %17 %18 %19 }}
header h1 "hdr.tag" valid %20 {{ %21 %22 %23 %24 %25 %26 %27 %28 }}
state s0 "start" {{ extract h0 extract h1 goto accept }}
control verify_checksum {{ }}
control ingress {{
  assign %1 = zext(%22, 9)
  {priority}
  if eq(%21, 8w1) {{ clone i2e 32w1 }}
  if eq(%21, 8w4) {{ assign %11 = 16w1 }}
}}
control egress {{
  assign %24 = slice(%3, 7, 0)
  {queues}
  if eq(%21, 8w2) {{ if eq(%3, 32w0) {{ clone e2e 32w1 }} }}
  if eq(%21, 8w3) {{ assign %21 = 8w0 recirculate }}
  if eq(%21, 8w5) {{ assign %1 = 9w511 }}
  if eq(%21, 8w6) {{ clone e2e 32w2 assign %1 = 9w511 }}
}}
control compute_checksum {{ }}
control deparser {{ emit h0 emit h1 }}
"#
    )
    .unwrap();
    text
}

/// Builds a switch by machine code or the interpreter, whose program cares about queues or does not.
pub fn tagged_switch(jit: bool, reads_queues: bool) -> Box<Switch> {
    let program = ir::text::parse(&text(reads_queues)).expect("IR text");
    ir::verify::verify(&program).expect("a program");
    let program = Arc::new(program);
    let executor: Arc<dyn Executor> = if jit {
        Arc::new(jit::compile(program.clone()).expect("compiles"))
    } else {
        Arc::new(Interpreter::new(program.clone()))
    };
    Box::new(Switch::new(program, executor, SwitchConfig::default()))
}

fn replicas(ports: &[u32]) -> Vec<Replica> {
    let numbered = ports.iter().zip(0..);
    numbered.map(|(&port, rid)| Replica { port, rid }).collect()
}

/// Creates a multicast group with a replica per port.
pub fn group(switch: &mut Switch, group_id: u32, ports: &[u32]) {
    let group = MulticastGroup {
        group_id,
        replicas: replicas(ports),
    };
    insert(switch, Entity::MulticastGroup(group));
}

/// Creates a clone session with a replica per port.
pub fn session(switch: &mut Switch, session_id: u32, ports: &[u32], class_of_service: u8) {
    let session = CloneSession {
        session_id,
        replicas: replicas(ports),
        packet_length_bytes: 0,
        class_of_service,
    };
    insert(switch, Entity::CloneSession(session));
}

fn insert(switch: &mut Switch, entity: Entity) {
    let operation = Operation::Insert;
    switch.write(Update { operation, entity }).expect("is new");
}
