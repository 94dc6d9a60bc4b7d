// Entries in the source: the first that matches wins in a ternary table, the longest prefix in an lpm table.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>  a;
    bit<8>  b;
    bit<16> c;
    bit<8>  first;
    bit<8>  second;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action first(bit<8> v) { hdr.data.first = v; }
    action second(bit<8> v) { hdr.data.second = v; }

    table t {
        key = {
            hdr.data.a: ternary;
            hdr.data.b: exact;
        }
        actions = { first; }
        default_action = first(0xDD);
        const entries = {
            (0x10 &&& 0xF0, 1): first(1);
            (0x12, 1): first(2);
            (0x12, 2): first(3);
            (_, 2): first(4);
        }
    }

    table u {
        key = { hdr.data.c: lpm; }
        actions = { second; NoAction; }
        default_action = NoAction();
        const entries = {
            0x1200 &&& 0xFF00: second(8);
            0x1234: second(16);
            0x1230 &&& 0xFFF0: second(12);
        }
    }

    apply {
        t.apply();
        u.apply();
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
