// A direct meter colours every hit of its table; the actions read the colour. An entry without a configuration is green.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> key;
    bit<8> colour;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_meter<bit<8>>(MeterType.bytes) rate;

    action mark() { rate.read(hdr.data.colour); }
    action twice() {
        bit<8> first;
        rate.read(first);
        rate.read(hdr.data.colour);
        hdr.data.colour = first ++ hdr.data.colour == 0 ? 8w0x40 : 8w0xff;
    }

    table t {
        key = { hdr.data.key: exact; }
        actions = { mark; twice; @defaultonly NoAction; }
        default_action = NoAction();
        meters = rate;
    }

    apply {
        sm.egress_spec = 1;
        t.apply();
    }
}

#include "include/rest.p4"
