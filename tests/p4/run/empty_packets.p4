// Packets of no bytes and of fewer than a header: the parser says so, the rest of the switch goes on.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> v;
    bit<8> w;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error == error.PacketTooShort) {
            hdr.data = { 0xE0, (bit<8>)sm.packet_length };
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
