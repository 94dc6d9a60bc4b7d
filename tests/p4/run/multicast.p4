// A copy for each replica, with its port and rid; an unknown group and an empty one give nothing.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<16> group;
    bit<16> rid;
    bit<16> port;
    bit<8>  instance_type;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        // The group goes before the port.
        sm.egress_spec = 8;
        sm.mcast_grp = hdr.data.group;
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.rid = sm.egress_rid;
        hdr.data.port = (bit<16>)sm.egress_port;
        hdr.data.instance_type = (bit<8>)sm.instance_type;
        if (sm.egress_rid == 0xBAD) {
            mark_to_drop(sm);
        }
    }
}

#include "include/rest.p4"
