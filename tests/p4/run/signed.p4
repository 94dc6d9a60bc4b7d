// Signed comparison, negation and widening.

#include <core.p4>
#include <v1model.p4>

header data_t {
    int<8>  a;
    int<8>  b;
    bit<8>  less;
    int<8>  negative;
    int<16> wide;
    bit<8>  unsigned_less;
    int<8>  product;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.less = hdr.data.a < hdr.data.b ? 8w1 : 8w0;
        hdr.data.negative = -hdr.data.a;
        hdr.data.wide = (int<16>)hdr.data.a;
        hdr.data.unsigned_less = (bit<8>)hdr.data.a < (bit<8>)hdr.data.b ? 8w1 : 8w0;
        hdr.data.product = hdr.data.a * hdr.data.b;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
