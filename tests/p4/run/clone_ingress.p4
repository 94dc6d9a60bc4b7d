// clone_preserving_field_list(I2E): the clone is the packet as it arrived, with the named metadata as ingress left it.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> session;
    bit<8> kept;
    bit<8> lost;
    bit<8> type;
}

struct headers_t { data_t data; }
struct meta_t {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
    @field_list(1, 2)
    bit<8> both;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        meta.kept = 0x11;
        if (hdr.data.session == 5) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        } else if (hdr.data.session == 6) {
            clone_preserving_field_list(CloneType.I2E, 6, 2);
        } else if (hdr.data.session == 7) {
            clone(CloneType.I2E, 7);
        }
        meta.kept = meta.kept + 1;
        meta.lost = 0x22;
        meta.both = 0x40;
        hdr.data.session = 0xAA;
        sm.egress_spec = 1;
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.kept = meta.kept + meta.both;
        hdr.data.lost = meta.lost;
        hdr.data.type = (bit<8>)sm.instance_type;
    }
}

#include "include/rest.p4"
