// Masks, ranges, tuples and default in select; the first case that matches counts, and none is NoMatch.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { bit<8> result; }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a, hdr.data.b) {
            (0x10, 0x20): one;
            (0x10 &&& 0xF0, _): two;
            (0x20 .. 0x2F, 5 .. 9): three;
            (default, 0xFF): four;
        }
    }
    state one {
        meta.result = 1;
        transition accept;
    }
    state two {
        meta.result = 2;
        transition accept;
    }
    state three {
        meta.result = 3;
        transition accept;
    }
    state four {
        meta.result = 4;
        transition reject;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.result = meta.result;
        if (sm.parser_error == error.NoMatch) {
            hdr.data.result = 0xEE;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
