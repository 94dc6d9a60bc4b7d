// Values wider than any machine word: carries and borrows run through all 256 bits.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<256> a;
    bit<256> b;
    bit<256> c;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<256> a = hdr.data.a;
        bit<256> b = hdr.data.b;
        hdr.data.a = a + b;
        hdr.data.b = b - a;
        hdr.data.c = a * b;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
