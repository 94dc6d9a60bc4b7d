// Shifts by a variable; by the width or more they give zero, or copies of the sign.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<16> a;
    int<16> b;
    bit<8>  n;
    bit<16> left;
    bit<16> right;
    int<16> signed_left;
    int<16> signed_right;
    bit<8>  constant;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.left = hdr.data.a << hdr.data.n;
        hdr.data.right = hdr.data.a >> hdr.data.n;
        hdr.data.signed_left = hdr.data.b << hdr.data.n;
        hdr.data.signed_right = hdr.data.b >> hdr.data.n;
        hdr.data.constant = (8w1 << 3) | (hdr.data.n >> 9);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
