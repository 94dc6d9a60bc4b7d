// An error in a sub-parser ends the whole parse; headers taken before it stay valid.

#include <core.p4>
#include <v1model.p4>

error { BadItem }

header data_t {
    bit<8> failed;
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
            1: bad;
            default: accept;
        }
    }
    state bad {
        verify(false, error.BadItem);
        transition accept;
    }
}

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    ItemParser() items;

    state start {
        packet.extract(hdr.data);
        items.apply(packet, hdr.first);
        items.apply(packet, hdr.second);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error == error.BadItem) {
            hdr.data.failed = 0xE1;
        } else if (!hdr.second.isValid()) {
            hdr.data.failed = 0xE0;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
