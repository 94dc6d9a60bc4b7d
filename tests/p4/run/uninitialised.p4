// Variables without a value read as zero: locals, metadata, out parameters, and each time a sub-control runs.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
    bit<8> d;
}

struct headers_t { data_t data; }
struct meta_t { bit<8> m; }

control Sub(out bit<8> result, in bit<8> set) {
    bit<8> local;

    apply {
        if (set != 0) {
            local = set;
        }
        result = local;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Sub() sub;

    action nothing(out bit<8> x) { }

    apply {
        bit<8> local;
        hdr.data.a = local;
        hdr.data.b = meta.m;
        nothing(hdr.data.c);
        sub.apply(hdr.data.d, 7);
        sub.apply(hdr.data.d, 0);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
