// random() stays between its bounds, both included.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> low;
    bit<8> high;
    bit<8> inside;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<8> v;
        random(v, hdr.data.low, hdr.data.high);
        hdr.data.inside = v >= hdr.data.low && v <= hdr.data.high ? 8w1 : 8w0;
        bit<16> wide;
        random(wide, 16w0x4242, 16w0x4242);
        if (wide != 0x4242) {
            hdr.data.inside = 0xEE;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
