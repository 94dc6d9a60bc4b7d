// Arguments by name in the list of actions, in default actions and in entries.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> kind;
    bit<8> a;
    bit<8> b;
    bit<8> c;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action both(in bit<8> p, in bit<8> q) {
        hdr.data.c = p;
        hdr.data.a = q;
    }
    action mixed(in bit<8> p, bit<8> x, bit<8> y) {
        hdr.data.a = p;
        hdr.data.b = x;
        hdr.data.c = y;
    }

    // All arguments have a direction, and the default action repeats them in the other order.
    table of_directed {
        key = { hdr.data.kind: exact; }
        actions = { both(q = hdr.data.b, p = hdr.data.a); }
        default_action = both(p = hdr.data.a, q = hdr.data.b);
    }
    // Those without direction alone.
    table of_data {
        key = { hdr.data.kind: exact; }
        actions = { mixed(p = hdr.data.b); NoAction; }
        default_action = mixed(y = 1, x = 2);
        const entries = {
            3: mixed(y = 5, x = 6);
            4: mixed(x = 7, p = hdr.data.b, y = 8);
        }
    }
    // All together, mixed.
    table of_all {
        key = { hdr.data.kind: exact; }
        actions = { mixed(p = hdr.data.c); }
        default_action = mixed(y = 3, p = hdr.data.c, x = 4);
    }

    apply {
        if (hdr.data.kind == 1) {
            of_directed.apply();
        } else if (hdr.data.kind == 9) {
            of_all.apply();
        } else {
            of_data.apply();
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
