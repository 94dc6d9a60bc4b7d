// Forwards between ports 0 and 1, and makes work beside that: entries become idle, packets that hit send digests, and packets of type
// 0x88b5 double and go round without end.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

parser SteadyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control SteadyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

struct sample_t {
    bit<48> time;
    bit<512> more;
}

control SteadyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action note() {
        digest<sample_t>(1, { std.ingress_global_timestamp, 512w7 });
    }

    table addresses {
        key = { hdr.ethernet.destination: exact; }
        actions = { note; NoAction; }
        default_action = NoAction();
        support_timeout = true;
        size = 1048576;
    }

    apply {
        addresses.apply();
        std.egress_spec = std.ingress_port ^ 1;
        if (hdr.ethernet.type == 0x88b5) {
            std.egress_spec = 2;
        }
    }
}

control SteadyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(1, CounterType.packets) rounds;

    apply {
        if (hdr.ethernet.type == 0x88b5) {
            rounds.count(0);
            clone(CloneType.E2E, 1);
            recirculate_preserving_field_list(0);
        }
    }
}

control SteadyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control SteadyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(SteadyParser(), SteadyVerify(), SteadyIngress(), SteadyEgress(), SteadyCompute(), SteadyDeparser()) main;
