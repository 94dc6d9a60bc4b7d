// Register cells of 200 bits, and of a struct's width packed by hand.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<200> v;
    bit<8>   index;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<200>>(300) cells;

    apply {
        bit<200> old;
        cells.read(old, (bit<32>)hdr.data.index + 44);
        cells.write((bit<32>)hdr.data.index + 44, hdr.data.v);
        hdr.data.v = old;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
