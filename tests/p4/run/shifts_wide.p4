// Shifts of wide values, across word borders.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<128> a;
    bit<8>   n;
    bit<128> left;
    bit<128> right;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.left = hdr.data.a << hdr.data.n;
        hdr.data.right = hdr.data.a >> hdr.data.n;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
