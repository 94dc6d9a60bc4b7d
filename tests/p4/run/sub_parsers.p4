// A parser applied inside another, twice; an error inside rejects the whole packet.

#include <core.p4>
#include <v1model.p4>

error { BadItem }

header data_t {
    bit<8> count;
    bit<8> failed;
}

header item_t {
    bit<8> tag;
    bit<8> v;
}

struct headers_t {
    data_t data;
    item_t first;
    item_t second;
}
struct meta_t { bit<8> count; }

parser ItemParser(packet_in packet, out item_t item, inout bit<8> count) {
    state start {
        packet.extract(item);
        verify(item.tag != 0, error.BadItem);
        count = count + 1;
        transition select(item.tag) {
            7: seven;
            default: accept;
        }
    }
    state seven {
        count = count + 0x70;
        transition accept;
    }
}

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    ItemParser() items;

    state start {
        packet.extract(hdr.data);
        items.apply(packet, hdr.first, meta.count);
        items.apply(packet, hdr.second, meta.count);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.count = meta.count;
        if (sm.parser_error == error.BadItem) {
            hdr.data.failed = 1;
        }
        hdr.first.v = hdr.first.v + 1;
        hdr.second.v = hdr.second.v + 1;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
