// clone(E2E): the clone is the packet as egress left it, and goes through egress once more.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> passes;
    bit<8> kept;
    bit<8> type;
}

struct headers_t { data_t data; }
struct meta_t {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        meta.kept = 1;
        meta.lost = 0x80;
        sm.egress_spec = 1;
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.passes = hdr.data.passes + 1;
        hdr.data.type = (bit<8>)sm.instance_type;
        hdr.data.kept = meta.kept + meta.lost;
        meta.kept = meta.kept + 1;
        if (sm.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, 5, 1);
            hdr.data.kept = hdr.data.kept + 0x10;
        }
    }
}

#include "include/rest.p4"
