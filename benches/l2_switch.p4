// A learning Ethernet switch: known sources at their ports, destinations to theirs, unknown ones flooded.
// An unknown source goes to the controller as a digest.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

#ifndef ADDRESSES
#define ADDRESSES 65536
#endif

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
}

struct learned_t {
    mac_t  address;
    port_t port;
}

parser SwitchParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control SwitchVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    port_t known_at = 0;

    action known(port_t port) {
        known_at = port;
    }

    action forward(port_t port) {
        std.egress_spec = port;
    }

    action flood() {
        std.mcast_grp = 1;
    }

    table sources {
        key = {
            hdr.ethernet.src_addr: exact;
        }
        actions = {
            known;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = ADDRESSES;
    }

    table destinations {
        key = {
            hdr.ethernet.dst_addr: exact;
        }
        actions = {
            forward;
            @defaultonly flood;
        }
        const default_action = flood();
        size = ADDRESSES;
    }

    apply {
        if (!hdr.ethernet.isValid()) {
            mark_to_drop(std);
            return;
        }
        if (sources.apply().miss || known_at != std.ingress_port) {
            digest<learned_t>(1, { hdr.ethernet.src_addr, std.ingress_port });
        }
        if (destinations.apply().hit && std.egress_spec == std.ingress_port) {
            mark_to_drop(std);
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        // A flooded copy does not go back to where it came from.
        if (std.egress_port == std.ingress_port) {
            mark_to_drop(std);
        }
    }
}

control SwitchComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(SwitchParser(), SwitchVerifyChecksum(), SwitchIngress(), SwitchEgress(), SwitchComputeChecksum(),
         SwitchDeparser()) main;
