// A loop that never ends costs its packet and nothing else: it is dropped after a bounded number of steps.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> endless;
}

struct headers_t { data_t data; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.endless) {
            1: again;
            default: accept;
        }
    }
    state again {
        transition select(packet.lookahead<bit<8>>()) {
            0xEE: again;
            default: accept;
        }
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
