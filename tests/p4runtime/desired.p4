// Objects of every kind that a controller can want, and actions that refer to others: for test_desired.py.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<32> flow;
    bit<16> kind;
    bit<8>  colour;
    bit<8>  path;
}

struct headers_t {
    h_t h;
}

struct seen_t {
    bit<32> flow;
}

struct metadata_t {
    bit<8> colour;
}

parser DesiredParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(8) kinds;

    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind) {
            kinds:   accept;
            default: other;
        }
    }
    state other {
        meta.colour = 0xff;
        transition accept;
    }
}

control DesiredVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control DesiredIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action_selector(HashAlgorithm.crc32, 64, 32) ecmp;
    action_profile(32) tunnels;
    meter(8, MeterType.bytes) rates;
    direct_meter<bit<8>>(MeterType.packets) flow_rates;
    register<bit<16>>(8) marks;

    action forward(bit<9> port) {
        standard.egress_spec = port;
    }

    action replicate(bit<16> group) {
        standard.mcast_grp = group;
    }

    action mirror(bit<32> session) {
        clone(CloneType.I2E, session);
    }

    action drop() {
        mark_to_drop(standard);
    }

    action encapsulate(bit<8> path) {
        hdr.h.path = path;
    }

    action police() {
        flow_rates.read(meta.colour);
    }

    table routes {
        key = {
            hdr.h.flow: lpm;
            hdr.h.path: selector;
        }
        actions = { forward; replicate; drop; }
        implementation = ecmp;
    }

    table encapsulation {
        key = { hdr.h.flow: exact; }
        actions = { encapsulate; }
        implementation = tunnels;
    }

    table policers {
        key = { hdr.h.flow: exact; }
        actions = { police; @defaultonly NoAction; }
        default_action = NoAction();
        meters = flow_rates;
    }

    table copies {
        key = {
            hdr.h.flow: ternary;
            hdr.h.kind: exact;
        }
        actions = { replicate; mirror; drop; }
        default_action = drop();
        support_timeout = true;
    }

    apply {
        policers.apply();
        rates.execute_meter((bit<32>)standard.ingress_port, hdr.h.colour);
        encapsulation.apply();
        routes.apply();
        copies.apply();
        marks.write(0, 1);
        digest<seen_t>(1, { hdr.h.flow });
        if (meta.colour == 2) {
            drop();
        }
    }
}

control DesiredEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control DesiredComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control DesiredDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(DesiredParser(), DesiredVerifyChecksum(), DesiredIngress(), DesiredEgress(), DesiredComputeChecksum(),
         DesiredDeparser()) main;
