// next, last and lastIndex in the parser; one header too many is StackOutOfBounds, and stays payload.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> failed;
    bit<8> last;
}

header label_t {
    bit<7> v;
    bit<1> bottom;
}

struct headers_t {
    data_t     data;
    label_t[2] labels;
}
struct meta_t { bit<8> last; }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition label;
    }
    state label {
        packet.extract(hdr.labels.next);
        meta.last = (bit<8>)hdr.labels.lastIndex;
        transition select(hdr.labels.last.bottom) {
            0: label;
            1: accept;
        }
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.last = meta.last;
        if (sm.parser_error == error.StackOutOfBounds) {
            hdr.data.failed = 1;
        } else if (sm.parser_error == error.PacketTooShort) {
            hdr.data.failed = 2;
        } else if (sm.parser_error == error.NoError) {
            hdr.labels[0].v = hdr.labels[0].v + 1;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
