// A key of 128 bits beside one of 9: all of it counts.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<128> address;
    bit<8>   result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<8> v) { hdr.data.result = v; }

    table t {
        key = {
            hdr.data.address: exact;
            sm.ingress_port: exact;
        }
        actions = { set; NoAction; }
        default_action = NoAction();
    }

    apply {
        t.apply();
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
