// Headers that are no whole bytes: emitted with zero bits up to the next byte, and impossible to extract.

#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> extract; bit<8> result; }
header nibble_t { bit<4> value; }
header three_t { bit<4> a; bit<16> b; }

struct headers_t {
    data_t   data;
    nibble_t nibble;
    three_t  three;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.extract) {
            1: nibble;
            default: accept;
        }
    }
    state nibble {
        packet.extract(hdr.nibble);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (sm.parser_error == error.ParserInvalidArgument && !hdr.nibble.isValid()) {
            hdr.data.result = 6;
        }
        if (hdr.data.extract == 0) {
            hdr.nibble = { 0xA };
            hdr.three.setValid();
            hdr.three.a = 0xB;
            hdr.three.b = 0xCDEF;
        }
    }
}

#include "include/rest.p4"
