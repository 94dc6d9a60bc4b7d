// mark_to_drop and egress_spec 511 drop at the end of ingress, or of egress; the later assignment counts.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> operation;
    bit<8> egress;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(1, CounterType.packets) seen;

    apply {
        sm.egress_spec = 1;
        seen.count(0);
        if (hdr.data.operation == 1) {
            mark_to_drop(sm);
        } else if (hdr.data.operation == 2) {
            sm.egress_spec = 511;
        } else if (hdr.data.operation == 3) {
            mark_to_drop(sm);
            sm.egress_spec = 2;
        }
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(1, CounterType.packets) passed;

    apply {
        passed.count(0);
        hdr.data.egress = (bit<8>)sm.egress_port;
        if (hdr.data.operation == 4) {
            mark_to_drop(sm);
        } else if (hdr.data.operation == 5) {
            // Egress cannot choose another port.
            sm.egress_spec = 7;
        }
    }
}

#include "include/rest.p4"
