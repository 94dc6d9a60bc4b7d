// The least that a program can do with a packet: drop it, send it as it came out of OUTPUT_PORT, or to the ports of OUTPUT_GROUP. The time
// of a switch and its network with these is not the time of a program; `processing.py` subtracts it.

#include <core.p4>
#include <v1model.p4>

struct headers_t {}

struct metadata_t {}

parser CarryParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control CarryChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control CarryIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
#if defined(OUTPUT_PORT)
        standard_metadata.egress_spec = OUTPUT_PORT;
#elif defined(OUTPUT_GROUP)
        standard_metadata.mcast_grp = OUTPUT_GROUP;
#else
        mark_to_drop(standard_metadata);
#endif
    }
}

control CarryEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control CarryDeparser(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(CarryParser(), CarryChecksum(), CarryIngress(), CarryEgress(), CarryChecksum(), CarryDeparser()) main;
