// Entries with priorities of their own, the largest first, which the control plane may add to.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<8> v) { hdr.data.result = v; }

    table t {
        key = { hdr.data.a: ternary; }
        actions = { set; }
        default_action = set(0xDD);
        entries = {
            priority = 10: 0x10 &&& 0xF0: set(1);
            priority = 30: 0x12: set(2);
            priority = 20: 0x13 &&& 0xFB: set(3);
        }
    }

    apply {
        t.apply();
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
