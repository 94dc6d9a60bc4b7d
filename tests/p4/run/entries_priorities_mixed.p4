// Entries with and without a priority: those without go on from the one before, by the table's step.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> key;
    bit<8> largest;
    bit<8> smallest;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action largest(bit<8> x) {
        hdr.data.largest = x;
    }
    action smallest(bit<8> x) {
        hdr.data.smallest = x;
    }

    // 40, 30, 35, 25
    table l {
        key = { hdr.data.key: ternary; }
        actions = { largest; }
        priority_delta = 10;
        default_action = largest(0);
        entries = {
            priority = 40: 0x10 &&& 0xF1: largest(1);
            0x11: largest(2);
            priority = 35: 0x11 &&& 0xF3: largest(3);
            0x10 &&& 0xF0: largest(4);
        }
    }
    // 10, 15, 12, 17
    table s {
        key = { hdr.data.key: ternary; }
        actions = { smallest; }
        largest_priority_wins = false;
        priority_delta = 5;
        default_action = smallest(0);
        entries = {
            priority = 10: 0x10 &&& 0xF1: smallest(1);
            0x11: smallest(2);
            priority = 12: 0x11 &&& 0xF3: smallest(3);
            0x10 &&& 0xF0: smallest(4);
        }
    }

    apply {
        l.apply();
        s.apply();
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
