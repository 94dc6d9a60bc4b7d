// The program of the P4Runtime tests: one of each thing that a control plane can touch.
// basic.p4info.txtpb says the same for tests that run without the compiler.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> unused;
}

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<8>  version_ihl;
    bit<8>  tos;
    bit<16> total_len;
    bit<16> identification;
    bit<16> flags_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

struct metadata_t {
    bit<8> class;
}

struct learn_t {
    bit<48> src_addr;
    bit<9>  port;
}

parser BasicParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control BasicVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control BasicIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(16) last_seen;
    counter(8, CounterType.packets_and_bytes) port_packets;
    direct_counter(CounterType.packets_and_bytes) ipv4_lpm_counter;

    action drop() {
        mark_to_drop(standard);
    }

    action forward(bit<9> port, bit<48> dst_addr) {
        standard.egress_spec = port;
        hdr.ethernet.dst_addr = dst_addr;
    }

    action to_cpu(bit<7> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard.ingress_port;
        hdr.packet_in.reason = reason;
        standard.egress_spec = CPU_PORT;
    }

    action multicast(bit<16> group) {
        standard.mcast_grp = group;
    }

    action set_class(bit<8> class) {
        meta.class = class;
    }

    action learn() {
        digest<learn_t>(1, { hdr.ethernet.src_addr, standard.ingress_port });
    }

    action pass() {}

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; to_cpu; multicast; drop; }
        default_action = drop();
        counters = ipv4_lpm_counter;
        size = 1024;
    }

    table acl {
        key = {
            hdr.ethernet.ether_type: exact;
            hdr.ipv4.src_addr: ternary;
            hdr.ipv4.total_len: range;
            hdr.ipv4.protocol: optional;
        }
        actions = { drop; @tableonly to_cpu; @defaultonly pass; }
        default_action = pass();
        size = 64;
    }

    table learned {
        key = { hdr.ethernet.src_addr: exact; }
        actions = { pass; learn; }
        const default_action = learn();
        size = 4;
    }

    table classes {
        key = { hdr.ipv4.tos: exact; }
        actions = { set_class; pass; }
        default_action = pass();
        const entries = {
            0xb8: set_class(7);
            0x28: set_class(1);
        }
    }

    table keyless {
        actions = { pass; set_class; }
        default_action = pass();
    }

    apply {
        port_packets.count((bit<32>) standard.ingress_port);
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            learned.apply();
            keyless.apply();
            if (hdr.ipv4.isValid()) {
                classes.apply();
                last_seen.write((bit<32>) standard.ingress_port, hdr.ipv4.src_addr);
                ipv4_lpm.apply();
                acl.apply();
            } else {
                drop();
            }
        }
    }
}

control BasicEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control BasicComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control BasicDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(BasicParser(), BasicVerifyChecksum(), BasicIngress(), BasicEgress(), BasicComputeChecksum(), BasicDeparser()) main;
