// A parser value set that the control plane has not filled matches nothing.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> v;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { bit<8> result; }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    value_set<bit<8>>(4) special;

    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.v) {
            special: marked;
            7: seven;
            default: accept;
        }
    }
    state marked {
        meta.result = 1;
        transition accept;
    }
    state seven {
        meta.result = 7;
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.result = meta.result;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
