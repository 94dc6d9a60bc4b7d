// `const` before single entries: the control plane can change the others, and the table.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
}
struct headers_t { h_t h; }
struct meta_t { }

parser MyParser(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}
control NoChecks(inout headers_t hdr, inout meta_t m) { apply { } }
control MyIngress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    action forward(bit<9> port) { s.egress_spec = port; }
    table masked {
        key = { hdr.h.a : ternary; }
        actions = { forward; NoAction; }
        entries = {
            const priority = 60 : 1 &&& 3 : forward(3);
            priority = 50 : 2 &&& 7 : forward(4);
            const 4 : forward(5);
            _ : NoAction();
        }
    }
    table exactly {
        key = { hdr.h.b : exact; }
        actions = { forward; }
        entries = {
            1 : forward(1);
            const 2 : forward(2);
        }
    }
    table longest {
        key = { hdr.h.b : lpm; }
        actions = { forward; }
        // All are constant, whatever stands before one.
        const entries = {
            const 0x10 &&& 0xf0 : forward(1);
            0x20 &&& 0xf0 : forward(2);
        }
    }
    apply {
        masked.apply();
        exactly.apply();
        longest.apply();
    }
}
control MyEgress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control MyDeparser(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
V1Switch(MyParser(), NoChecks(), MyIngress(), MyEgress(), NoChecks(), MyDeparser()) main;
