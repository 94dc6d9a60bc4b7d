// An exact table with several key fields, one of them an expression; entries come and go.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>  a;
    bit<16> b;
    bit<3>  c;
    bit<5>  d;
    bit<8>  result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<8> v, bit<9> port) {
        hdr.data.result = v;
        sm.egress_spec = port;
    }

    table t {
        key = {
            hdr.data.a: exact;
            hdr.data.b: exact @name("second");
            hdr.data.c + 1: exact @name("third");
            hdr.data.isValid(): exact;
        }
        actions = { set; }
        default_action = set(0xDD, 1);
    }

    apply {
        t.apply();
    }
}

#include "include/rest.p4"
