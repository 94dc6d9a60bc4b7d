// Slices as values and as left-hand sides: only the named bits change.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<32> a;
    bit<8>  b;
    bit<96> c;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.a[7:4] = 0xA;
        hdr.data.a[31:28] = hdr.data.b[3:0];
        hdr.data.b = hdr.data.a[19:16] ++ hdr.data.a[23:8][3:0];
        // Across the border of a word.
        hdr.data.c[71:56] = hdr.data.c[15:0];
        hdr.data.c[0:0] = 1;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
