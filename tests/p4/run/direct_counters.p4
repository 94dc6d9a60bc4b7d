// A direct counter has a cell for each entry, and counts its hits.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> key;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) hits;

    action set(bit<8> v) { hdr.data.result = v; }
    action drop() { mark_to_drop(sm); }

    table t {
        key = { hdr.data.key: ternary; }
        actions = { set; drop; }
        default_action = set(0xDD);
        counters = hits;
    }

    apply {
        sm.egress_spec = 1;
        t.apply();
    }
}

#include "include/rest.p4"
