// A deparser with statements of its own: order, conditions, and a header twice.

#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> v; }
header tag_t { bit<8> v; }

struct headers_t {
    data_t data;
    tag_t  tag;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.tag);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
    }
}

#define HAS_DEPARSER
control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.tag);
        if (hdr.data.v == 1) {
            packet.emit(hdr.data);
            packet.emit(hdr.data);
        }
    }
}

#include "include/rest.p4"
