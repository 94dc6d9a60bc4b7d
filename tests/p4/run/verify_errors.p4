// verify stops the parser with an error of the program's own; ingress runs and can tell which.

#include <core.p4>
#include <v1model.p4>

error { ZeroA, OddB }

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> result;
}

header tail_t { bit<8> t; }

struct headers_t {
    data_t data;
    tail_t tail;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        verify(hdr.data.a != 0, error.ZeroA);
        verify(hdr.data.b & 1 == 0, error.OddB);
        packet.extract(hdr.tail);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error == error.ZeroA) {
            hdr.data.result = 0xE0;
        } else if (sm.parser_error == error.OddB) {
            hdr.data.result = 0xE1;
        } else if (sm.parser_error == error.NoError) {
            hdr.tail.t = 0xFF;
        } else {
            hdr.data.result = 0xEE;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
