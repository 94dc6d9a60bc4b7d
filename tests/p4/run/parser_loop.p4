// A loop over parser states, with a local variable that lives from state to state.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> count;
    bit<8> sum;
}

struct headers_t { data_t data; }
struct meta_t { bit<8> sum; }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    bit<8> left;

    state start {
        packet.extract(hdr.data);
        left = hdr.data.count;
        meta.sum = 0;
        transition check;
    }
    state check {
        transition select(left) {
            0: accept;
            default: item;
        }
    }
    state item {
        meta.sum = meta.sum + packet.lookahead<bit<8>>();
        packet.advance(8);
        left = left - 1;
        transition check;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.sum = meta.sum;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
