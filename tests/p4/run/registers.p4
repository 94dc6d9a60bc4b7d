// Registers keep their cells from packet to packet; beyond the end a read gives anything and a write does nothing.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>  index;
    bit<8>  add;
    bit<48> value;
    bit<1>  flag;
    bit<7>  pad;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<48>>(4) sums;
    register<bit<1>>(2) flags;

    apply {
        bit<48> v;
        sums.read(v, (bit<32>)hdr.data.index);
        v = v + (bit<48>)hdr.data.add;
        sums.write((bit<32>)hdr.data.index, v);
        if (hdr.data.index < 4) {
            hdr.data.value = v;
        }
        flags.read(hdr.data.flag, 1);
        flags.write(1, ~hdr.data.flag);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
