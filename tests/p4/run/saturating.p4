// |+| and |-| stop at the ends of the range: 0 and 2^w - 1, or -2^(w-1) and 2^(w-1) - 1 when signed.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
    int<8> c;
    int<8> d;
    bit<4> e;
    int<4> f;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<8> a = hdr.data.a;
        int<8> c = hdr.data.c;
        hdr.data.a = a |+| hdr.data.b;
        hdr.data.b = a |-| hdr.data.b;
        hdr.data.c = c |+| hdr.data.d;
        hdr.data.d = c |-| hdr.data.d;
        hdr.data.e = hdr.data.e |+| 9;
        hdr.data.f = hdr.data.f |-| 3;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
