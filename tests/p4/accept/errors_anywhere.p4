// Error constants that are used before their declaration, in all kinds of places.
#include <core.p4>
#include <v1model.p4>

error { Early }

header h_t {
    bit<8> a;
    bit<8> b;
}
struct headers_t { h_t h; }
struct meta_t { error seen; }

const error LATEST = error.Latest;

bool is_late(in error e) { return e == error.Late; }

parser MyParser(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.h);
        verify(hdr.h.a != 3, error.Late);
        verify(hdr.h.a != 4, LATEST);
        verify(hdr.h.a != 5, error.Early);
        transition accept;
    }
}

error { Late, Latest }

control NoChecks(inout headers_t hdr, inout meta_t m) { apply { } }
control MyIngress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    apply {
        m.seen = s.parser_error;
        if (is_late(m.seen)) {
            hdr.h.b = 1;
        } else if (m.seen == error.Last) {
            hdr.h.b = 2;
        }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control MyDeparser(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
V1Switch(MyParser(), NoChecks(), MyIngress(), MyEgress(), NoChecks(), MyDeparser()) main;

error { Last }
