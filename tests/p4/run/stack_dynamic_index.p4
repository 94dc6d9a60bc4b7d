// An index that is known only at run time. Beyond the end a read gives anything and a write changes nothing.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> index;
    bit<8> value;
    bit<8> valid;
}

header label_t { bit<8> v; }

struct headers_t {
    data_t     data;
    label_t[3] labels;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.labels.next);
        packet.extract(hdr.labels.next);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<8> i = hdr.data.index;
        if (i < 2) {
            hdr.data.value = hdr.labels[i].v;
        }
        if (i < 3 && hdr.labels[i].isValid()) {
            hdr.data.valid = 1;
        }
        hdr.labels[i].v = 0xEE;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
