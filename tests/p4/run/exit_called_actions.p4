// `exit` in an action or function that the action of a table calls ends that action too: nothing behind the call happens, and what
// was passed by copy is copied back.

#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> k; bit<8> a; bit<8> b; bit<8> seen; }
struct headers_t { data_t d; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.d); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) { apply { } }

action leave(inout bit<8> v) { v = v + 1; exit; }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action quit() { exit; }
    action calls(inout bit<8> v) { v = v + 0x10; leave(v); v = v + 0x20; hdr.d.b = 0xFF; }
    action calls_own(inout bit<8> v) { v = v + 0x10; quit(); v = v + 0x20; hdr.d.b = 0xFF; }
    action calls_directly() { hdr.d.a = hdr.d.a + 0x10; leave(hdr.d.a); hdr.d.b = 0xFF; }
    action through(inout bit<8> v) { calls_own(v); v = 0xEE; hdr.d.b = 0xEE; }

    table t {
        key = { hdr.d.k: exact; }
        actions = { calls(hdr.d.a); calls_own(hdr.d.a); calls_directly; through(hdr.d.a); NoAction; }
        const entries = {
            1: calls(hdr.d.a);
            2: calls_own(hdr.d.a);
            3: calls_directly();
            4: through(hdr.d.a);
        }
        default_action = NoAction();
    }

    apply {
        sm.egress_spec = 1;
        t.apply();
        hdr.d.seen = 0x01;
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
