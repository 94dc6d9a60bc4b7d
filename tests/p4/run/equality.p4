// == on headers, structs and stacks: two invalid headers are equal, a valid and an invalid one are not.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> result;
}

header tag_t {
    bit<8> a;
    bit<8> b;
}

struct pair_t {
    bit<8> x;
    bit<8> y;
}

struct headers_t {
    data_t   data;
    tag_t    first;
    tag_t    second;
    tag_t[2] stack;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.first);
        packet.extract(hdr.second);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        pair_t p = { hdr.first.a, hdr.first.b };
        pair_t q = { hdr.second.a, hdr.second.b };
        hdr.data.result = 0;
        if (hdr.first == hdr.second) {
            hdr.data.result = hdr.data.result | 1;
        }
        if (p != q) {
            hdr.data.result = hdr.data.result | 2;
        }
        if (hdr.stack[0] == hdr.stack[1]) {
            hdr.data.result = hdr.data.result | 4;
        }
        // Valid with zero fields is still not invalid.
        tag_t zero = { 0, 0 };
        if (hdr.stack[0] != zero) {
            hdr.data.result = hdr.data.result | 8;
        }
        hdr.stack[0].setValid();
        if (hdr.stack[0] == zero) {
            hdr.data.result = hdr.data.result | 0x10;
        }
        hdr.stack[0].setInvalid();
        if (p == (pair_t){ x = 1, y = 2 }) {
            hdr.data.result = hdr.data.result | 0x20;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
