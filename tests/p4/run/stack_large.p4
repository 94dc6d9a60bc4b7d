// A stack of so many elements that machine code keeps them in memory: extracted in a loop, read and written at an index, popped and pushed.

#include <core.p4>
#include <v1model.p4>

header count_t {
    bit<8> count;
    bit<8> index;
    bit<8> value;
}

header hop_t {
    bit<4> high;
    bit<4> low;
}

struct headers_t {
    count_t   count;
    hop_t[40] hops;
}
struct meta_t { bit<8> left; }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.count);
        meta.left = hdr.count.count;
        transition select(meta.left) {
            0: accept;
            default: hop;
        }
    }
    state hop {
        packet.extract(hdr.hops.next);
        meta.left = meta.left - 1;
        transition select(meta.left) {
            0: accept;
            default: hop;
        }
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<8> index = hdr.count.index;
        if (hdr.hops[index].isValid()) {
            hdr.count.value = (bit<8>)hdr.hops[index].low;
            hdr.hops[index].low = 0xf;
        } else {
            hdr.count.value = 0xee;
        }
        sm.egress_spec = sm.parser_error == error.NoError ? 9w1 : 9w2;
        if (hdr.count.count == 3) {
            hdr.hops.pop_front(1);
        }
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.count.count == 2) {
            hdr.hops.push_front(2);
            hdr.hops[1].setValid();
            hdr.hops[1].high = 0xa;
            hdr.hops[1].low = hdr.hops[3].low;
        }
    }
}

#include "include/rest.p4"
