// A field of variable length: extraction by length, copying, and all its errors.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> bits;
    bit<8> result;
}

header options_t { varbit<64> options; }

struct headers_t {
    data_t    data;
    options_t options;
    options_t copy;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.options, (bit<32>)hdr.data.bits);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error == error.HeaderTooShort) {
            hdr.data.result = 1;
        } else if (sm.parser_error == error.PacketTooShort) {
            hdr.data.result = 2;
        } else if (sm.parser_error == error.ParserInvalidArgument) {
            hdr.data.result = 3;
        } else {
            hdr.copy = hdr.options;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
