// The steps after ingress, in order: clones always; then resubmission, else multicast, else drop, else the port.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> mask;
    bit<8> type;
}

struct headers_t { data_t data; }
struct meta_t {
    @field_list(1)
    bit<8> resubmitted;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.data.mask & 1 != 0) { clone(CloneType.I2E, 5); }
        if (hdr.data.mask & 2 != 0) { sm.mcast_grp = 1; }
        if (hdr.data.mask & 4 != 0) { sm.egress_spec = 511; }
        if (hdr.data.mask & 8 != 0 && meta.resubmitted == 0) {
            meta.resubmitted = 1;
            resubmit_preserving_field_list(1);
        }
        if (hdr.data.mask & 0x10 != 0) { mark_to_drop(sm); }
        if (hdr.data.mask & 0x20 != 0) { clone(CloneType.I2E, 6); }
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.type = (bit<8>)sm.instance_type;
    }
}

#include "include/rest.p4"
