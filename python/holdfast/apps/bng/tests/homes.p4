// Subscribers' home gateways, for tests: each host's packets become a PPPoE session's on a line with two tags, and what comes down the
// lines must be for the session's own MAC address, line and host, or it is counted. It shares no code with the gateway.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

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
    bit<16>  start;
    bit<16>  total_len;
    bit<96>  middle;
    bit<32>  dst;
}

struct headers_t {
    ethernet_t ethernet;
    pppoe_t    pppoe;
    ip_t       ip;
}

struct metadata_t { }

parser HomesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x8100:  parse_pppoe;
            0x0800:  parse_ip;
            default: accept;
        }
    }

    state parse_pppoe {
        packet.extract(hdr.pppoe);
        transition select(hdr.pppoe.pppoe_type, hdr.pppoe.protocol) {
            (0x8864, 0x0021): parse_ip;
            default:          accept;
        }
    }

    state parse_ip {
        packet.extract(hdr.ip);
        transition accept;
    }
}

control HomesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(1, CounterType.packets) wrong_session;

    action dial(bit<9> uplink, bit<16> session_id, bit<16> s_vid, bit<16> c_vid, bit<48> mac, bit<48> gateway) {
        std.egress_spec = uplink;
        hdr.ethernet.src = mac;
        hdr.ethernet.dst = gateway;
        hdr.ethernet.type = 0x8100;
        hdr.pppoe.setValid();
        hdr.pppoe.s_vid = s_vid;
        hdr.pppoe.c_type = 0x8100;
        hdr.pppoe.c_vid = c_vid;
        hdr.pppoe.pppoe_type = 0x8864;
        hdr.pppoe.version_type_code = 0x1100;
        hdr.pppoe.session_id = session_id;
        hdr.pppoe.length = hdr.ip.total_len + 2;
        hdr.pppoe.protocol = 0x0021;
    }

    table homes {
        key = { std.ingress_port: exact @name("port"); }
        actions = { dial; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    action deliver(bit<9> port, bit<48> host_mac, bit<48> our_mac) {
        std.egress_spec = port;
        hdr.ethernet.dst = host_mac;
        hdr.ethernet.src = our_mac;
        hdr.ethernet.type = 0x0800;
        hdr.pppoe.setInvalid();
    }

    table hosts {
        key = {
            hdr.pppoe.session_id: exact @name("session_id");
            hdr.pppoe.s_vid:      exact @name("s_vid");
            hdr.pppoe.c_vid:      exact @name("c_vid");
            hdr.ethernet.dst:     exact @name("mac");
            hdr.ip.dst:           exact @name("address");
        }
        actions = { deliver; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        mark_to_drop(std);
        if (hdr.pppoe.isValid()) {
            if (hosts.apply().miss) {
                wrong_session.count(0);
            }
        } else if (hdr.ip.isValid()) {
            homes.apply();
        }
    }
}

control HomesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control HomesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control HomesCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control HomesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.pppoe);
        packet.emit(hdr.ip);
    }
}

V1Switch(HomesParser(), HomesVerify(), HomesIngress(), HomesEgress(), HomesCompute(), HomesDeparser()) main;
