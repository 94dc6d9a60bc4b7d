// A learning Ethernet switch that keeps VLANs apart: the bridge of IEEE 802.1Q, with a controller that learns.
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_VLAN = 0x8100;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header vlan_t {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> id;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t vlan;
}

struct metadata_t {
    bit<12> vlan;
}

struct seen_t {
    bit<48> mac;
    bit<12> vlan;
    bit<9> port;
}

parser ParserImpl(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        meta.vlan = 0;
        transition select(headers.ethernet.type) {
            TYPE_VLAN: tagged;
            default: accept;
        }
    }
    state tagged {
        packet.extract(headers.vlan);
        meta.vlan = headers.vlan.id;
        transition accept;
    }
}

control NoVerify(inout headers_t headers, inout metadata_t meta) {
    apply { }
}

control Bridge(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    action learn() {
        digest<seen_t>(1, { headers.ethernet.source, meta.vlan, standard.ingress_port });
    }
    action flood() {
        standard.mcast_grp = 1;
    }
    action forward(bit<9> port) {
        standard.egress_spec = port;
    }
    table sources {
        key = { headers.ethernet.source: exact; meta.vlan: exact; standard.ingress_port: exact; }
        actions = { NoAction; learn; }
        default_action = learn();
    }
    table stations {
        key = { headers.ethernet.destination: exact; meta.vlan: exact; }
        actions = { forward; flood; }
        default_action = flood();
    }
    apply {
        sources.apply();
        stations.apply();
    }
}

control Leave(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);
        }
    }
}

control NoCompute(inout headers_t headers, inout metadata_t meta) {
    apply { }
}

control DeparserImpl(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(ParserImpl(), NoVerify(), Bridge(), Leave(), NoCompute(), DeparserImpl()) main;
