// Every object that P4Runtime has an entity for and basic.p4 has not.

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

struct metadata_t {
    bit<8> colour;
}

parser StatefulParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) wanted_kinds;

    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind) {
            wanted_kinds: accept;
            default: other;
        }
    }
    state other {
        meta.colour = 0xff;
        transition accept;
    }
}

control StatefulVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control StatefulIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action_selector(HashAlgorithm.crc32, 8, 32) ecmp;
    action_profile(4) tunnels;
    meter(16, MeterType.bytes) port_rates;
    direct_meter<bit<8>>(MeterType.packets) flow_rates;
    direct_counter(CounterType.packets) flow_counts;
    @p4runtime_role("statistics") register<bit<16>>(32) marks;

    action forward(bit<9> port) {
        standard.egress_spec = port;
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
        actions = { forward; drop; }
        implementation = ecmp;
        size = 64;
    }

    table encapsulation {
        key = { hdr.h.flow: exact; }
        actions = { encapsulate; }
        implementation = tunnels;
    }

    @p4runtime_role("policy") table policers {
        key = { hdr.h.flow: exact; }
        actions = { police; @defaultonly NoAction; }
        default_action = NoAction();
        meters = flow_rates;
        counters = flow_counts;
    }

    table learned {
        key = { hdr.h.flow: exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
        support_timeout = true;
    }

    apply {
        policers.apply();
        port_rates.execute_meter((bit<32>) standard.ingress_port, hdr.h.colour);
        encapsulation.apply();
        learned.apply();
        routes.apply();
        marks.write(0, 1);
        if (meta.colour == 2) {
            drop();
        }
    }
}

control StatefulEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control StatefulComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control StatefulDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(StatefulParser(), StatefulVerifyChecksum(), StatefulIngress(), StatefulEgress(), StatefulComputeChecksum(),
         StatefulDeparser()) main;
