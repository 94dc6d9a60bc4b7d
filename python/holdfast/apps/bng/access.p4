// An access node with subscribers' home gateways, for simulations: each host's packets become a PPPoE session's on a line with two
// tags, and what comes down the lines must be for the session's own MAC address, line and host, or it is counted. All other frames of
// lines are the controller's, which models the subscribers' PPP clients. It shares no code with the gateway.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"

#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_PPPOE_SESSION 0x8864
#define PPP_IPV4 0x0021

header pppoe_t {
    bit<16> s_vid;
    bit<16> c_type;
    bit<16> c_vid;
    bit<16> pppoe_type;
    bit<16> version_type_code;
    bit<16> session_id;
    bit<16> length;
    bit<16> protocol;
}

header ip_t {
    bit<16> start;
    bit<16> total_len;
    bit<96> middle;
    bit<32> dst;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t  packet_in;
    ethernet_t   ethernet;
    pppoe_t      pppoe;
    ip_t         ip;
}

struct metadata_t { }

parser AccessParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_VLAN: look_at_line;
            ETHERTYPE_IPV4: parse_ip;
            default:        accept;
        }
    }

    state look_at_line {
        pppoe_t line = packet.lookahead<pppoe_t>();
        transition select(line.pppoe_type, line.protocol) {
            (ETHERTYPE_PPPOE_SESSION, PPP_IPV4): parse_pppoe;
            default:                             accept;
        }
    }

    state parse_pppoe {
        packet.extract(hdr.pppoe);
        transition parse_ip;
    }

    state parse_ip {
        packet.extract(hdr.ip);
        transition accept;
    }
}

control AccessIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(1, CounterType.packets) wrong_session;
    counter(1, CounterType.packets) no_session;

    action dial(port_t uplink, bit<16> session_id, bit<16> s_vid, bit<16> c_vid, mac_t mac, mac_t gateway) {
        std.egress_spec = uplink;
        hdr.ethernet.src_addr = mac;
        hdr.ethernet.dst_addr = gateway;
        hdr.ethernet.ether_type = ETHERTYPE_VLAN;
        hdr.pppoe.setValid();
        hdr.pppoe.s_vid = s_vid;
        hdr.pppoe.c_type = ETHERTYPE_VLAN;
        hdr.pppoe.c_vid = c_vid;
        hdr.pppoe.pppoe_type = ETHERTYPE_PPPOE_SESSION;
        hdr.pppoe.version_type_code = 0x1100;
        hdr.pppoe.session_id = session_id;
        hdr.pppoe.length = hdr.ip.total_len + 2;
        hdr.pppoe.protocol = PPP_IPV4;
    }

    table homes {
        key = { std.ingress_port: exact @name("port"); }
        actions = { dial; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    action deliver(port_t port, mac_t host_mac, mac_t our_mac) {
        std.egress_spec = port;
        hdr.ethernet.dst_addr = host_mac;
        hdr.ethernet.src_addr = our_mac;
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.pppoe.setInvalid();
    }

    table hosts {
        key = {
            hdr.pppoe.session_id:  exact @name("session_id");
            hdr.pppoe.s_vid:       exact @name("s_vid");
            hdr.pppoe.c_vid:       exact @name("c_vid");
            hdr.ethernet.dst_addr: exact @name("mac");
            hdr.ip.dst:            exact @name("address");
        }
        actions = { deliver; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.pppoe.isValid() && hdr.ip.isValid()) {
            mark_to_drop(std);
            if (hosts.apply().miss) {
                wrong_session.count(0);
            }
        } else if (hdr.ip.isValid()) {
            mark_to_drop(std);
            if (homes.apply().miss) {
                no_session.count(0);
            }
        } else if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == ETHERTYPE_VLAN) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in._pad = 0;
            std.egress_spec = CPU_PORT;
        } else {
            mark_to_drop(std);
        }
    }
}

control AccessEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control AccessVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AccessCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AccessDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.pppoe);
        packet.emit(hdr.ip);
    }
}

V1Switch(AccessParser(), AccessVerify(), AccessIngress(), AccessEgress(), AccessCompute(), AccessDeparser()) main;
