// lookahead reads without taking; of a type, of a header, and beyond the end.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> kind;
    bit<8> v;
}

header other_t {
    bit<4>  kind;
    bit<20> v;
}

struct headers_t {
    data_t  data;
    other_t other;
}
struct meta_t { bit<20> seen; }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            1: parse_data;
            2: parse_nothing;
            default: parse_other;
        }
    }
    state parse_data {
        packet.extract(hdr.data);
        transition accept;
    }
    state parse_nothing {
        other_t ahead = packet.lookahead<other_t>();
        meta.seen = ahead.v;
        transition accept;
    }
    state parse_other {
        bit<4> kind = packet.lookahead<bit<4>>();
        packet.extract(hdr.other);
        hdr.other.v = hdr.other.v + (bit<20>)kind;
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error == error.PacketTooShort) {
            hdr.data.setValid();
            hdr.data.kind = 0xFE;
            hdr.data.v = 0;
        } else if (meta.seen != 0) {
            hdr.data.setValid();
            hdr.data.kind = 0xDD;
            hdr.data.v = meta.seen[7:0];
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
