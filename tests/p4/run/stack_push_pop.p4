// push_front and pop_front move elements with their validity; elements that fall off are lost, elements that come in are invalid.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> operation;
    bit<8> count;
}

header label_t { bit<8> v; }

struct headers_t {
    data_t     data;
    label_t[3] labels;
}
struct meta_t { bit<8> left; }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        meta.left = hdr.data.count;
        transition select(meta.left) {
            0: accept;
            default: label;
        }
    }
    state label {
        packet.extract(hdr.labels.next);
        meta.left = meta.left - 1;
        transition select(meta.left) {
            0: accept;
            default: label;
        }
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.data.operation == 1) {
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].v = 0xAA;
        } else if (hdr.data.operation == 2) {
            hdr.labels.pop_front(1);
        } else if (hdr.data.operation == 3) {
            hdr.labels.push_front(2);
        } else if (hdr.data.operation == 4) {
            hdr.labels.pop_front(3);
        } else if (hdr.data.operation == 5) {
            hdr.labels.push_front(1);
            hdr.labels.pop_front(2);
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
