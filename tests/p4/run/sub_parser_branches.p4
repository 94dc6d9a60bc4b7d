// Sub-parsers applied inside of if statements, one within another.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> count;
    bit<8> seen;
    bit<8> end;
}

header item_t {
    bit<8> tag;
}

struct headers_t {
    data_t data;
    item_t first;
    item_t second;
}
struct meta_t { }

parser ItemParser(packet_in packet, out item_t item) {
    state start {
        packet.extract(item);
        transition select(item.tag) {
            0: reject;
            default: accept;
        }
    }
}

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    ItemParser() items;

    state start {
        packet.extract(hdr.data);
        if (hdr.data.count >= 1) {
            items.apply(packet, hdr.first);
            hdr.data.seen = 1;
            if (hdr.data.count >= 2) {
                items.apply(packet, hdr.second);
                hdr.data.seen = hdr.data.seen + 1;
            }
            hdr.data.seen = hdr.data.seen | 0x10;
        } else if (hdr.data.count == 0) {
            hdr.data.seen = 0x0F;
        }
        hdr.data.end = 0x0E;
        transition select(hdr.data.seen) {
            0x12: both;
            default: accept;
        }
    }
    state both {
        hdr.data.end = 0xBB;
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
