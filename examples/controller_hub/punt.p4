// Hands every frame to the controller with its port, and sends what the controller hands back out of the port that it names.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_in")
header packet_in_t {
    bit<16> ingress_port;
}

@controller_header("packet_out")
header packet_out_t {
    bit<16> egress_port;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
}

struct metadata_t {}

parser PuntParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: from_controller;
            default: accept;
        }
    }

    state from_controller {
        packet.extract(hdr.packet_out);
        transition accept;
    }
}

control PuntVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control PuntIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = (bit<9>) hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            std.egress_spec = CPU_PORT;
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (bit<16>) std.ingress_port;
        }
    }
}

control PuntEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {}
}

control PuntCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control PuntDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
    }
}

V1Switch(PuntParser(), PuntVerify(), PuntIngress(), PuntEgress(), PuntCompute(), PuntDeparser()) main;
