// advance skips bits; the skipped bits do not leave the switch.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> bytes;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        packet.advance((bit<32>)hdr.data.bytes << 3);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error == error.PacketTooShort) {
            hdr.data.result = 0xEE;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
