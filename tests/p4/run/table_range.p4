// Ranges include both ends; priorities decide where they overlap.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<16> port;
    bit<8>  result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<8> v) { hdr.data.result = v; }

    table t {
        key = { hdr.data.port: range; }
        actions = { set; }
        default_action = set(0xDD);
    }

    apply {
        t.apply();
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
