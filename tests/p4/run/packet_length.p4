// packet_length counts the whole packet; queue and port fields hold what the switch says.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<32> length;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<8>  priority;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.length = sm.packet_length;
        hdr.data.ingress_port = (bit<16>)sm.ingress_port;
        sm.egress_spec = 0x101;
        sm.priority = 5;
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.egress_port = (bit<16>)sm.egress_port;
        hdr.data.priority = (bit<8>)sm.priority;
    }
}

#include "include/rest.p4"
