// Arithmetic wraps at the width of the field, whatever that is.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<13> a;
    bit<13> b;
    bit<6>  c;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<13> sum = hdr.data.a + hdr.data.b;
        bit<13> product = hdr.data.a * hdr.data.b;
        hdr.data.a = sum;
        hdr.data.b = product;
        hdr.data.c = hdr.data.c - 7;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
