// A hub: every frame leaves by all other ports, which are those of multicast group 1.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

parser HubParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control HubVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control HubIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.mcast_grp = 1;
    }
}

control HubEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == std.ingress_port) {
            mark_to_drop(std);
        }
    }
}

control HubCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control HubDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(HubParser(), HubVerify(), HubIngress(), HubEgress(), HubCompute(), HubDeparser()) main;
