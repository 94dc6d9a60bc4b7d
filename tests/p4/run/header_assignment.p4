// Assigning a header copies its validity: from a valid one, from an invalid one, from a list, through a struct.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> operation;
}

header tag_t {
    bit<8> a;
    bit<8> b;
}

struct tags_t {
    tag_t first;
    tag_t second;
}

struct headers_t {
    data_t data;
    tags_t one;
    tags_t two;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.one.first);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.data.operation == 1) {
            hdr.one.second = hdr.one.first;
            hdr.one.first.a = 0xFF;
        } else if (hdr.data.operation == 2) {
            hdr.one.first = hdr.one.second;
        } else if (hdr.data.operation == 3) {
            hdr.two.second = { 1, hdr.one.first.b };
        } else if (hdr.data.operation == 4) {
            hdr.two = hdr.one;
            hdr.one.first.setInvalid();
        } else if (hdr.data.operation == 5) {
            hdr.two.first = { b = 7, a = 9 };
            hdr.two = { hdr.two.second, hdr.one.first };
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
