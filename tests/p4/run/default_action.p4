// A default action with arguments, which the control plane changes; a table without a key has nothing else.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> key;
    bit<8> a;
    bit<8> b;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<4> high, bit<4> low) { hdr.data.a = high ++ low; }
    action clear() { hdr.data.a = 0; }
    action other(bit<8> v) { hdr.data.b = v; }

    table t {
        key = { hdr.data.key: exact; }
        actions = { set; clear; }
        default_action = set(4, 2);
    }

    table keyless {
        actions = { other; @defaultonly NoAction; }
    }

    apply {
        t.apply();
        if (keyless.apply().hit) {
            hdr.data.a = 0xBA;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
