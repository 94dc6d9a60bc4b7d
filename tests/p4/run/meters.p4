// A meter without rates is green; with rates the burst is green, then yellow, then red, and time refills it.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> index;
    bit<8> colour;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    meter(2, MeterType.packets) m;

    apply {
        m.execute_meter((bit<32>)hdr.data.index, hdr.data.colour);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
