// Forwards between ports 0 and 1, with any table entries: they decide only the cells that are counted.
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

control SteadyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<32> number = 0;
    register<bit<32>>(1048576) values;
    counter(1048576, CounterType.packets) packets;

    action note(bit<32> value) {
        number = value;
    }

    table addresses {
        key = { hdr.ethernet.destination: exact; }
        actions = { note; NoAction; }
        default_action = NoAction();
        size = 1048576;
    }

    table prefixes {
        key = { hdr.ethernet.source: ternary; }
        actions = { note; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    apply {
        addresses.apply();
        prefixes.apply();
        values.write(number, number);
        packets.count(number);
        std.egress_spec = std.ingress_port ^ 1;
    }
}

control SteadyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {}
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
