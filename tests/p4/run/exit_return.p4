// return leaves its control or action; exit leaves ingress altogether, but copies out first, and egress runs all the same.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> operation;
    bit<8> x;
    bit<8> y;
    bit<8> egress;
}

struct headers_t { data_t data; }
struct meta_t { }

control Sub(inout bit<8> operation, inout bit<8> x) {
    action leave() {
        exit;
    }

    action back() {
        x = x + 1;
        if (operation == 3) {
            return;
        }
        x = x + 0x40;
    }

    apply {
        x = 0x10;
        if (operation == 1) {
            exit;
        }
        if (operation == 2) {
            return;
        }
        if (operation == 4) {
            leave();
        }
        back();
        x = x + 2;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Sub() sub;

    apply {
        sm.egress_spec = 1;
        sub.apply(hdr.data.operation, hdr.data.x);
        hdr.data.y = 0xAA;
        if (hdr.data.operation == 5) {
            return;
        }
        hdr.data.y = 0xBB;
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.egress = 0xEE;
    }
}

#include "include/rest.p4"
