// An enum with a width is a field like any other; values without a name pass through.

#include <core.p4>
#include <v1model.p4>

enum bit<8> kind_t {
    ping = 1,
    pong = 2,
    last = 0x80
}

header data_t {
    kind_t kind;
    bit<8> next;
    kind_t copy;
}

struct headers_t { data_t data; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.kind) {
            kind_t.last: reject;
            default: accept;
        }
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.next = (bit<8>)hdr.data.kind + 1;
        hdr.data.copy = (kind_t)(hdr.data.next);
        if (hdr.data.kind == kind_t.ping) {
            hdr.data.kind = kind_t.pong;
        }
        if (hdr.data.copy == kind_t.pong) {
            hdr.data.next = 0xFF;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
