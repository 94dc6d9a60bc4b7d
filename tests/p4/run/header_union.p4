// At most one member of a header union is valid.

#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> kind; }
header short_t { bit<8> v; }
header long_t { bit<16> v; }

header_union either_t {
    short_t short;
    long_t  long;
}

struct headers_t {
    data_t   data;
    either_t either;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.kind) {
            1: parse_short;
            2: parse_long;
            default: accept;
        }
    }
    state parse_short {
        packet.extract(hdr.either.short);
        transition accept;
    }
    state parse_long {
        packet.extract(hdr.either.long);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.either.short.isValid()) {
            hdr.either.long.setValid();
            hdr.either.long.v = 0x1234;
        } else if (hdr.either.long.isValid()) {
            hdr.either.long.v = hdr.either.long.v + 1;
        }
        if (!hdr.either.isValid()) {
            hdr.data.kind = 0xEE;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
