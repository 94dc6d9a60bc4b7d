// Arguments are copied in from left to right, and out from left to right after the call: aliases show it.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action bump(inout bit<8> x, in bit<8> y) {
        hdr.data.a = 0x64;
        x = x + y;
        hdr.data.b = hdr.data.a;
    }

    action both(out bit<8> p, out bit<8> q) {
        p = 1;
        q = 2;
    }

    action swap(inout bit<8> p, inout bit<8> q) {
        bit<8> t = p;
        p = q;
        q = t;
    }

    apply {
        // While it runs hdr.data.a is 0x64; at the end x is copied out over it.
        bump(hdr.data.a, hdr.data.a);
        // The last one copied out stays.
        both(hdr.data.c, hdr.data.c);
        swap(hdr.data.a, hdr.data.c);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
