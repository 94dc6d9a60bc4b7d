// A learning switch: it tells the controller of a source that is new or has moved, and floods what it has no entry for.
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

struct learnt_t {
    bit<48> address;
    bit<9> port;
}

parser SwitchParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control SwitchVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action learn() {
        learnt_t message;
        message.address = hdr.ethernet.src;
        message.port = std.ingress_port;
        digest<learnt_t>(1, message);
    }

    // The sources that are known, each at its port.
    table sources {
        key = {
            hdr.ethernet.src: exact;
            std.ingress_port: exact;
        }
        actions = {
            NoAction;
            learn;
        }
        const default_action = learn();
        size = 4096;
    }

    action forward(bit<9> port) {
        std.egress_spec = port;
    }

    action flood() {
        std.mcast_grp = 1;
    }

    table destinations {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            forward;
            flood;
        }
        const default_action = flood();
        size = 4096;
    }

    apply {
        if (!hdr.ethernet.isValid()) {
            mark_to_drop(std);
            return;
        }
        sources.apply();
        destinations.apply();
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == std.ingress_port) {
            mark_to_drop(std);
        }
    }
}

control SwitchCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(SwitchParser(), SwitchVerify(), SwitchIngress(), SwitchEgress(), SwitchCompute(), SwitchDeparser()) main;
