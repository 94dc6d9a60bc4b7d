// Drops every packet: the program behind the firewall when its replacements are measured.

#include <core.p4>
#include <v1model.p4>

struct headers_t {}

struct metadata_t {}

parser DropParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control DropChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control DropIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        mark_to_drop(standard_metadata);
    }
}

control DropEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control DropDeparser(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(DropParser(), DropChecksum(), DropIngress(), DropEgress(), DropChecksum(), DropDeparser()) main;
