// A packet that is cut when it leaves is whole in every copy made before: another round, a replica, a clone.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> kind;
    bit<8> cut;
    bit<8> length;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.data.length = (bit<8>)sm.packet_length;
        if (sm.instance_type == 0) {
            truncate((bit<32>)hdr.data.cut);
            // The shortest counts.
            truncate((bit<32>)hdr.data.cut + 1);
            if (hdr.data.kind == 2) {
                sm.mcast_grp = 7;
            } else if (hdr.data.kind == 3) {
                clone(CloneType.I2E, 5);
            } else if (hdr.data.kind == 5) {
                resubmit_preserving_field_list(0);
            }
        } else {
            // Another round.
            hdr.data.kind = hdr.data.kind + 0x80;
        }
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.length = (bit<8>)sm.packet_length;
        if (sm.instance_type == 0) {
            if (hdr.data.kind == 1) {
                recirculate_preserving_field_list(0);
            } else if (hdr.data.kind == 4) {
                clone(CloneType.E2E, 6);
            } else if (hdr.data.kind == 6) {
                // Longer than what ingress asked for.
                truncate(7);
            } else if (hdr.data.kind == 7) {
                truncate(2);
            }
        }
    }
}

#include "include/rest.p4"
