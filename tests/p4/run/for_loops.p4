// for over a range and with init, condition and update; break and continue; nested.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> n;
    bit<8> sum;
    bit<8> evens;
    bit<8> pairs;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.sum = 0;
        hdr.data.evens = 0;
        hdr.data.pairs = 0;
        for (bit<8> i = 0; i < hdr.data.n; i = i + 1) {
            if (i == 10) {
                break;
            }
            hdr.data.sum = hdr.data.sum + i;
        }
        for (bit<8> i in 8w1 .. 8w6) {
            if (i & 1 == 1) {
                continue;
            }
            hdr.data.evens = hdr.data.evens << 2 | i;
        }
        for (bit<8> i = 0; i < 3; i = i + 1) {
            for (bit<8> j = 0; j < 3; j = j + 1) {
                if (j > i) {
                    break;
                }
                hdr.data.pairs = hdr.data.pairs + 1;
            }
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
