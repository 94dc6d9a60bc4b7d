// Arguments that the table binds are copied in and out like those of a call; the rest come from the entry.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action rotate(inout bit<8> x, bit<8> v) {
        x = x + v;
        hdr.data.b = hdr.data.b + x;
    }

    table t {
        key = { hdr.data.a: exact; }
        actions = { rotate(hdr.data.a); NoAction; }
        default_action = NoAction();
    }

    apply {
        t.apply();
        t.apply();
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
