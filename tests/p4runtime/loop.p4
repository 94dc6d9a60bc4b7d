// A switch whose data plane can be watched through P4Runtime alone: a packet-out names the port that its payload arrives on, and
// whatever leaves carries a packet-in header that says where (the tests bring every packet that leaves back as a packet-in).

#include <core.p4>
#include <v1model.p4>

@controller_header("packet_out")
header packet_out_t {
    bit<9> ingress_port;
    bit<7> unused;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9>  egress_port;
    bit<7>  colour;
    bit<16> instance;
}

header flow_t {
    bit<32> source;
    bit<32> destination;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t  packet_in;
    flow_t       flow;
}

struct metadata_t {
    bit<8> colour;
}

struct learn_t {
    bit<32> source;
    bit<9>  port;
}

parser LoopParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.packet_out);
        packet.extract(hdr.flow);
        transition accept;
    }
}

control LoopVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control LoopIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action_selector(HashAlgorithm.crc32, 16, 16) next_hops;
    meter(512, MeterType.packets) port_rates;
    register<bit<32>>(512) packets_of_port;
    bit<32> packets;

    action forward(bit<9> port) {
        standard.egress_spec = port;
    }

    action multicast(bit<16> group) {
        standard.mcast_grp = group;
    }

    action drop() {
        mark_to_drop(standard);
    }

    table routes {
        key = {
            hdr.flow.destination: lpm;
            hdr.flow.source: selector;
        }
        actions = { forward; multicast; drop; }
        default_action = drop();
        implementation = next_hops;
    }

    action learn() {
        digest<learn_t>(1, { hdr.flow.source, hdr.packet_out.ingress_port });
    }

    table sources {
        key = { hdr.flow.source: exact; }
        actions = { NoAction; learn; }
        default_action = learn();
    }

    apply {
        packets_of_port.read(packets, (bit<32>) hdr.packet_out.ingress_port);
        packets_of_port.write((bit<32>) hdr.packet_out.ingress_port, packets + 1);
        port_rates.execute_meter((bit<32>) hdr.packet_out.ingress_port, meta.colour);
        sources.apply();
        routes.apply();
    }
}

control LoopEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.packet_out.setInvalid();
        hdr.packet_in.setValid();
        hdr.packet_in.egress_port = standard.egress_port;
        hdr.packet_in.colour = (bit<7>) meta.colour;
        hdr.packet_in.instance = standard.egress_rid;
    }
}

control LoopComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control LoopDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.flow);
    }
}

V1Switch(LoopParser(), LoopVerifyChecksum(), LoopIngress(), LoopEgress(), LoopComputeChecksum(), LoopDeparser()) main;
