// apply().hit and apply().miss, and the order: the action runs before the branch.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> key;
    bit<8> mark;
    bit<8> hit;
    bit<8> miss;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action mark(bit<8> v) { hdr.data.mark = v; }

    table t {
        key = { hdr.data.key: exact; }
        actions = { mark; }
        default_action = mark(0xDF);
    }

    table u {
        key = { hdr.data.mark: exact; }
        actions = { NoAction; }
        const default_action = NoAction();
    }

    apply {
        if (t.apply().hit) {
            hdr.data.hit = hdr.data.mark;
        } else {
            hdr.data.hit = 0xEE;
        }
        if (u.apply().miss && hdr.data.key != 9) {
            hdr.data.miss = 1;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
