//! Programs for the Portable Switch Architecture out of bytes: what they have of the language is little, but their packets take every way
//! through the architecture, with headers that come, go, grow and move between two parsers and two deparsers.
//!
//! Most packets go from port to port, which the fast path does alone; it has to stop for the others at the right point. [`Watched`] counts
//! how far it got. Like [`crate::generate`] it does not know what a program means.

use crate::choices::Choices;
use engine::{Executor, Exit, FastPath, FastPathContext, PacketContext};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The fields of the header types. The field `next` selects the header that follows, so that both parsers read most
/// packets alike. The last header is stored in memory, and is longer than the free space in front of most packets.
const HEADERS: [&str; 6] = [
    "bit<8> next; bit<8> a; bit<16> sum;",
    "bit<8> next; bit<4> a; bit<3> b; bit<1> c; bit<16> sum; bit<48> wide;",
    "bit<8> next; bit<16> a; bit<9> b; bit<7> c; bit<128> wide;",
    "bit<8> next; bit<8> a; bit<13> b; bit<3> c; bit<32> d; bit<64> wide; bit<16> sum;",
    "bit<8> next; bit<8> a; varbit<64> options;",
    "bit<8> next; bit<8> a; bit<1024> huge; bit<16> sum;",
];

/// The fields of each header that statements use, with their widths in bits.
const FIELDS: [&[(&str, u32)]; 6] = [
    &[("a", 8), ("sum", 16), ("next", 8)],
    &[
        ("a", 4),
        ("b", 3),
        ("c", 1),
        ("sum", 16),
        ("wide", 48),
        ("next", 8),
    ],
    &[("a", 16), ("b", 9), ("c", 7), ("wide", 128)],
    &[
        ("a", 8),
        ("b", 13),
        ("c", 3),
        ("d", 32),
        ("wide", 64),
        ("sum", 16),
    ],
    &[("a", 8)],
    &[("a", 8), ("huge", 1024), ("sum", 16)],
];

/// The position in [`HEADERS`] of the header with a varbit field.
const VARBIT: usize = 4;

/// The half of the pipeline that is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Ingress,
    Egress,
}

struct Writer<'a> {
    choices: Choices<'a>,
    text: String,
    /// The headers that the program uses, by position.
    headers: Vec<usize>,
}

/// Generates the program that `bytes` determine.
pub fn program(bytes: &[u8]) -> String {
    let mut choices = Choices::new(bytes);
    let count = 2 + choices.below(4) as usize;
    let mut writer = Writer {
        choices,
        text: String::new(),
        headers: (0..count).collect(),
    };
    if writer.choices.one_in(3) {
        writer.headers.push(HEADERS.len() - 1);
    }
    writer.program();
    writer.text
}

impl Writer<'_> {
    fn add(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    fn program(&mut self) {
        self.add("#include <core.p4>\n#include <psa.p4>");
        for (i, fields) in HEADERS.iter().enumerate() {
            self.add(format!("header h{i}_t {{ {fields} }}"));
        }
        let members: String = self.headers.iter().fold(String::new(), |mut text, i| {
            // Writing to a String does not fail.
            let _ = write!(text, "h{i}_t h{i}; ");
            text
        });
        self.add(format!("struct headers_t {{ {members} }}"));
        self.add(
            "struct meta_t { bit<16> x; bit<8> y; }\nstruct bridged_t { bit<16> x; bit<8> y; }",
        );
        self.add("struct learn_t { bit<8> a; bit<16> x; }");
        self.parser(Half::Ingress);
        self.control(Half::Ingress);
        self.deparser(Half::Ingress);
        self.parser(Half::Egress);
        self.control(Half::Egress);
        self.deparser(Half::Egress);
        self.add(
            "PSA_Switch(IngressPipeline(IngressParserImpl(), IngressImpl(), IngressDeparserImpl()), \
             PacketReplicationEngine(), EgressPipeline(EgressParserImpl(), EgressImpl(), \
             EgressDeparserImpl()), BufferingQueueingEngine()) main;",
        );
    }

    /// Writes a parser: a state for each header, of which `next` chooses the one behind it.
    fn parser(&mut self, half: Half) {
        let (name, bridged) = match half {
            Half::Ingress => (
                "Ingress",
                "in bridged_t resubmit_meta, in bridged_t recirculate_meta",
            ),
            Half::Egress => (
                "Egress",
                "in bridged_t normal_meta, in bridged_t clone_i2e_meta, in bridged_t clone_e2e_meta",
            ),
        };
        let lower = name.to_lowercase();
        self.add(format!(
            "parser {name}ParserImpl(packet_in packet, out headers_t hdr, inout meta_t meta, \
             in psa_{lower}_parser_input_metadata_t istd, {bridged}) {{ InternetChecksum() ck;"
        ));
        self.add("state start {");
        match half {
            Half::Ingress => self.add(
                "if (istd.packet_path == PSA_PacketPath_t.RESUBMIT) { meta.x = resubmit_meta.x; }\n\
                 if (istd.packet_path == PSA_PacketPath_t.RECIRCULATE) { meta.x = recirculate_meta.x; }",
            ),
            Half::Egress => self.add(
                "meta.x = normal_meta.x ^ clone_i2e_meta.x ^ clone_e2e_meta.x; meta.y = normal_meta.y;",
            ),
        }
        self.add("transition parse_h0; }");
        for header in self.headers.clone() {
            self.state(header);
        }
        self.add("}");
    }

    fn state(&mut self, header: usize) {
        self.add(format!("state parse_h{header} {{"));
        match header {
            VARBIT => {
                let bits = self
                    .choices
                    .pick(&["hdr.h0.a & 7", "hdr.h0.next & 3", "8w2"]);
                self.add(format!(
                    "packet.extract(hdr.h{header}, (bit<32>) ({bits}) << 3);"
                ));
            }
            _ => self.add(format!("packet.extract(hdr.h{header});")),
        }
        match self.choices.below(16) {
            0 => self.add(format!("verify(hdr.h{header}.a != 2, error.NoMatch);")),
            1 => self.add("meta.y = packet.lookahead<bit<8>>();"),
            2 => self.add("packet.advance(8);"),
            3 => {
                let number = self.choices.below(4);
                self.add(format!("hdr.h{header}.a = {number};"));
            }
            4 | 5 if header == 1 => self.add(
                "ck.clear(); ck.add({ hdr.h1.next, hdr.h1.a, hdr.h1.b, hdr.h1.c }); ck.add(hdr.h1.wide);\n\
                 verify(ck.get() != hdr.h1.sum, error.ParserInvalidArgument);",
            ),
            _ => {}
        }
        self.add(format!("transition select(hdr.h{header}.next) {{"));
        for other in self.headers.clone() {
            // Mostly on, in the order of the headers; seldom to one that may have been.
            if other > header || self.choices.one_in(16) {
                self.add(format!("{other}: parse_h{other};"));
            }
        }
        let rest = match self.choices.below(12) {
            0 => "reject",
            _ => "accept",
        };
        self.add(format!("default: {rest}; }} }}"));
    }

    fn control(&mut self, half: Half) {
        let (name, lower) = match half {
            Half::Ingress => ("Ingress", "ingress"),
            Half::Egress => ("Egress", "egress"),
        };
        self.add(format!(
            "control {name}Impl(inout headers_t hdr, inout meta_t meta, in psa_{lower}_input_metadata_t istd, \
             inout psa_{lower}_output_metadata_t ostd) {{"
        ));
        self.add("Register<bit<32>, bit<8>>(8) cells; Counter<bit<32>, bit<8>>(8, PSA_CounterType_t.PACKETS_AND_BYTES) counts;");
        self.add("DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS_AND_BYTES) hits; Meter<bit<8>>(4, PSA_MeterType_t.BYTES) rates;");
        let (field, wide) = (self.field(), self.field());
        self.add(format!(
            "action set(bit<16> value) {{ hits.count(); {field} = ({wide_ty}) value; }}",
            field = field.0,
            wide_ty = field.1
        ));
        self.add("action note(bit<16> value) { hits.count(); meta.x = value; }");
        if half == Half::Ingress {
            self.add("action forward(PortIdUint_t port) { hits.count(); send_to_port(ostd, (PortId_t) port); }");
            self.add("action refuse() { hits.count(); ingress_drop(ostd); }");
        }
        let more = match half {
            Half::Ingress => "forward; refuse;",
            Half::Egress => "",
        };
        let kind = self.choices.pick(&["exact", "ternary", "lpm"]);
        self.add(format!(
            "table choose {{ key = {{ {key}: {kind}; }} actions = {{ set; note; {more} NoAction; }} \
             default_action = NoAction(); psa_direct_counter = hits; }}",
            key = wide.0
        ));
        self.add("apply {");
        if half == Half::Ingress {
            let port = self.choices.pick(&[
                "1",
                "2",
                "3",
                "7",
                "PSA_PORT_CPU",
                "(PortIdUint_t) hdr.h0.a",
            ]);
            self.add(format!("send_to_port(ostd, (PortId_t) {port});"));
        } else {
            self.add("meta.x = meta.x + (bit<16>) (PortIdUint_t) istd.egress_port + (bit<16>) (ClassOfServiceUint_t) istd.class_of_service;");
            self.add("meta.y = meta.y ^ (bit<8>) (TimestampUint_t) istd.egress_timestamp;");
        }
        for _ in 0..2 + self.choices.below(8) {
            self.statement(half);
        }
        if half == Half::Egress {
            self.add(
                "if (hdr.h0.isValid()) { hdr.h0.sum = hdr.h0.sum ^ meta.x ^ (bit<16>) meta.y; }",
            );
        }
        self.add("}\n}");
    }

    /// Chooses a field of a header, and returns its path and its type, such as `bit<16>`.
    fn field(&mut self) -> (String, String) {
        let header = self.choices.pick(&self.headers.clone());
        let (field, width) = self.choices.pick(FIELDS[header]);
        (format!("hdr.h{header}.{field}"), format!("bit<{width}>"))
    }

    fn value(&mut self, ty: &str) -> String {
        match self.choices.below(6) {
            0 => format!("({ty}) meta.x"),
            1 => format!("({ty}) meta.y"),
            2 | 3 => {
                let (other, _) = self.field();
                format!("({ty}) {other}")
            }
            _ => self.choices.below(5).to_string(),
        }
    }

    fn condition(&mut self) -> String {
        match self.choices.below(4) {
            0 => {
                let header = self.choices.pick(&self.headers.clone());
                format!("hdr.h{header}.isValid()")
            }
            _ => {
                let (field, _) = self.field();
                let number = self.choices.below(4);
                let operator = self.choices.pick(&["==", "!="]);
                format!("{field} {operator} {number}")
            }
        }
    }

    fn statement(&mut self, half: Half) {
        let ingress = half == Half::Ingress;
        match self.choices.below(20) {
            // Never where the choices have ended: it would have no end either.
            19 => {
                let condition = self.condition();
                self.add(format!("if ({condition}) {{"));
                self.statement(half);
                self.add("} else {");
                self.statement(half);
                self.add("}");
            }
            1 => {
                let header = self.choices.pick(&self.headers.clone());
                let method = self.choices.pick(&["setValid", "setInvalid"]);
                let condition = self.condition();
                self.add(format!("if ({condition}) {{ hdr.h{header}.{method}(); }}"));
            }
            2 => {
                let header = self.choices.pick(&self.headers.clone());
                let method = self.choices.pick(&["setValid", "setInvalid"]);
                self.add(format!("hdr.h{header}.{method}();"));
            }
            3 | 4 => self.add("choose.apply();"),
            5 => self.add("cells.write(hdr.h0.a & 7, cells.read(hdr.h0.a & 7) + 1); meta.x = (bit<16>) cells.read(1);"),
            6 => self.add("counts.count(hdr.h0.a);"),
            7 => self.add("if (rates.execute(hdr.h0.a & 3) == PSA_MeterColor_t.RED) { meta.y = 9; }"),
            8 => self.rare(half),
            9 => {
                let condition = self.condition();
                self.add(format!("if ({condition}) {{ exit; }}"));
            }
            10 if ingress => self.add("meta.y = (bit<8>) (PortIdUint_t) istd.ingress_port ^ (bit<8>) (TimestampUint_t) istd.ingress_timestamp;"),
            11 if ingress => self.add("if (istd.parser_error != error.NoError) { ingress_drop(ostd); }"),
            10 | 11 => self.add("if (istd.parser_error != error.NoError) { meta.y = meta.y + 1; }"),
            12 if ingress => self.add("ostd.class_of_service = (ClassOfService_t) (ClassOfServiceUint_t) hdr.h0.a;"),
            13 => {
                let condition = self.condition();
                let drop = if ingress { "ingress_drop(ostd);" } else { "egress_drop(ostd);" };
                self.add(format!("if ({condition}) {{ {drop} }}"));
            }
            _ => {
                let (field, ty) = self.field();
                let value = self.value(&ty);
                self.add(format!("{field} = {value};"));
            }
        }
    }

    /// Writes a statement, under a condition that few packets fulfil, with a request that the fast path does not
    /// handle, such as a clone.
    fn rare(&mut self, half: Half) {
        let condition = self.condition();
        let request = match (half, self.choices.below(4)) {
            (Half::Ingress, 0) => {
                "ostd.clone = true; ostd.clone_session_id = (CloneSessionId_t) 1;"
            }
            (Half::Ingress, 1) => "ostd.resubmit = istd.packet_path == PSA_PacketPath_t.NORMAL;",
            (Half::Ingress, 2) => "multicast(ostd, (MulticastGroup_t) 1);",
            (Half::Ingress, _) => {
                "if (istd.packet_path == PSA_PacketPath_t.NORMAL) { send_to_port(ostd, PSA_PORT_RECIRCULATE); }"
            }
            (Half::Egress, _) => {
                "if (istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) { ostd.clone = true; ostd.clone_session_id = (CloneSessionId_t) 2; }"
            }
        };
        self.add(format!("if ({condition}) {{ {request} }}"));
    }

    fn deparser(&mut self, half: Half) {
        self.add(match half {
            Half::Ingress => {
                "control IngressDeparserImpl(packet_out packet, out bridged_t clone_i2e_meta, out bridged_t resubmit_meta, \
                 out bridged_t normal_meta, inout headers_t hdr, in meta_t meta, in psa_ingress_output_metadata_t istd) {\n\
                 Digest<learn_t>() learn; InternetChecksum() ck; apply {"
            }
            Half::Egress => {
                "control EgressDeparserImpl(packet_out packet, out bridged_t clone_e2e_meta, out bridged_t recirculate_meta, \
                 inout headers_t hdr, in meta_t meta, in psa_egress_output_metadata_t istd, \
                 in psa_egress_deparser_input_metadata_t edstd) {\n\
                 InternetChecksum() ck; apply {"
            }
        });
        match half {
            Half::Ingress => {
                self.add("if (psa_clone_i2e(istd)) { clone_i2e_meta.x = 0xc1; }\nif (psa_resubmit(istd)) { resubmit_meta.x = meta.x; }");
                if self.choices.one_in(2) {
                    self.add("if (psa_normal(istd)) { normal_meta.x = meta.x; normal_meta.y = hdr.h0.a; }");
                }
                if self.choices.one_in(3) {
                    self.add("if (hdr.h0.a == 3) { learn.pack({ hdr.h0.a, meta.x }); }");
                }
            }
            Half::Egress => self.add(
                "if (psa_clone_e2e(istd)) { clone_e2e_meta.x = 0xe2; }\n\
                 if (psa_recirculate(istd, edstd)) { recirculate_meta.x = meta.x + 1; }",
            ),
        }
        if self.headers.contains(&3) && self.choices.one_in(2) {
            self.add(
                "if (hdr.h3.isValid()) { ck.clear(); ck.add({ hdr.h3.next, hdr.h3.a, hdr.h3.b, hdr.h3.c, hdr.h3.d, hdr.h3.wide }); \
                 hdr.h3.sum = ck.get(); }",
            );
        }
        let mut order = self.headers.clone();
        if self.choices.one_in(4) {
            let at = self.choices.below(order.len() as u32) as usize;
            order.rotate_left(at);
        }
        if self.choices.one_in(8) {
            order.pop();
        }
        let in_between = self.choices.one_in(16);
        for header in order {
            self.add(format!("packet.emit(hdr.h{header});"));
            if in_between {
                self.add("hdr.h0.a = 0;");
            }
        }
        self.add("}\n}");
    }
}

/// An executor that passes all calls to another one, and counts how far that one's fast path gets.
pub struct Watched {
    executor: Arc<dyn Executor>,
    counts: [AtomicU64; 4],
}

/// The number of packets that a fast path was given, by how far it got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Packets that were sent or dropped on the fast path.
    pub end: u64,
    /// Packets that left the fast path after ingress.
    pub after_ingress: u64,
    /// Packets that left the fast path after egress.
    pub after_egress: u64,
    /// Calls for which there was no fast path.
    pub unsupported: u64,
}

impl std::ops::AddAssign for Reached {
    fn add_assign(&mut self, other: Reached) {
        self.end += other.end;
        self.after_ingress += other.after_ingress;
        self.after_egress += other.after_egress;
        self.unsupported += other.unsupported;
    }
}

impl Watched {
    /// Makes an executor that passes everything to `executor`, with all counts zero.
    pub fn new(executor: Arc<dyn Executor>) -> Watched {
        Watched {
            executor,
            counts: Default::default(),
        }
    }

    /// Returns the counts up to now.
    pub fn reached(&self) -> Reached {
        let [end, after_ingress, after_egress, unsupported] =
            [0, 1, 2, 3].map(|i: usize| self.counts[i].load(Ordering::Relaxed));
        Reached {
            end,
            after_ingress,
            after_egress,
            unsupported,
        }
    }

    fn count(&self, which: usize, packets: usize) {
        self.counts[which].fetch_add(packets as u64, Ordering::Relaxed);
    }
}

impl Executor for Watched {
    fn run(&self, pipeline: ir::Pipeline, cx: &mut PacketContext<'_>) {
        self.executor.run(pipeline, cx);
    }

    fn parse(&self, cx: &mut PacketContext<'_>) {
        self.executor.parse(cx);
    }

    fn fast_path(&self, cx: &mut FastPathContext<'_>) -> FastPath {
        let (first, count) = (cx.first, cx.packets.len());
        let reached = self.executor.fast_path(cx);
        match &reached {
            FastPath::Unsupported => self.count(3, 1),
            FastPath::Done => self.count(0, count - first),
            FastPath::Stopped(stop) => {
                self.count(0, stop.packet - first);
                let which = match stop.exit {
                    Exit::AfterIngress => 1,
                    Exit::AfterEgress(_) => 2,
                };
                self.count(which, 1);
            }
        }
        reached
    }
}
