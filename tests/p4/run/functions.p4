// Functions: early return, side effects through inout, arguments evaluated from left to right, calls in calls.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> largest;
    bit<8> order;
    bit<8> calls;
}

struct headers_t { data_t data; }
struct meta_t { }

bit<8> larger(in bit<8> a, in bit<8> b) {
    if (a > b) {
        return a;
    }
    return b;
}

bit<8> next(inout bit<8> counter) {
    counter = counter + 1;
    return counter;
}

bit<8> pair(in bit<8> high, in bit<8> low) {
    return high << 4 | low;
}

void clear(out bit<8> x) {
    x = 0;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        clear(hdr.data.calls);
        hdr.data.largest = larger(larger(hdr.data.a, 0x10), hdr.data.b);
        hdr.data.order = pair(next(hdr.data.calls), next(hdr.data.calls));
        if (next(hdr.data.calls) == 3 || next(hdr.data.calls) == 0) {
            hdr.data.order = hdr.data.order + 0x80;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
