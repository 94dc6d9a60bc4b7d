// Controls as parts of controls: constructor parameters, directions, and state of their own for each instance.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
}

struct headers_t { data_t data; }
struct meta_t { }

control Add(inout bit<8> x, out bit<8> before)(bit<8> amount) {
    register<bit<8>>(1) calls;

    apply {
        before = x;
        bit<8> n;
        calls.read(n, 0);
        n = n + 1;
        calls.write(0, n);
        if (x == 0xFF) {
            return;
        }
        x = x + amount;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Add(1) one;
    Add(0x10) sixteen;

    apply {
        one.apply(hdr.data.a, hdr.data.c);
        one.apply(hdr.data.a, hdr.data.c);
        sixteen.apply(hdr.data.b, hdr.data.c);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
