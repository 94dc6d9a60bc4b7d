// A meter without rates is green; with rates the burst is green, then yellow, then red, and time refills it.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> index;
    bit<8> colour;
    bit<8> direct_colour;
}

struct headers_t { data_t data; }
struct meta_t { bit<2> direct_colour; }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    meter(2, MeterType.packets) m;
    direct_meter<bit<2>>(MeterType.bytes) d;

    action read() { d.read(meta.direct_colour); }

    table t {
        key = { hdr.data.index: exact; }
        actions = { read; NoAction; }
        default_action = NoAction();
        meters = d;
    }

    apply {
        meta.direct_colour = 3;
        m.execute_meter((bit<32>)hdr.data.index, hdr.data.colour);
        t.apply();
        hdr.data.direct_colour = (bit<8>)meta.direct_colour;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
