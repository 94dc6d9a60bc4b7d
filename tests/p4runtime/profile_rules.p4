// A group table, an indirect table without a selector, and a direct table.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

parser RulesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control RulesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control RulesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @max_group_size(4)
    action_selector(HashAlgorithm.crc16, 16, 8) selector;
    action_profile(4) plain;

    action forward(bit<9> port) {
        standard.egress_spec = port;
    }

    action at_miss() {
        standard.egress_spec = 5;
    }

    action other() {
        standard.egress_spec = 6;
    }

    table spread {
        key = { hdr.h.a: exact; hdr.h.a: selector @name("hash"); }
        actions = { forward; NoAction; @defaultonly at_miss; }
        implementation = selector;
    }

    table single {
        key = { hdr.h.a: exact; }
        actions = { forward; NoAction; }
        implementation = plain;
    }

    table direct {
        key = { hdr.h.a: exact; }
        actions = { forward; other; NoAction; }
        default_action = NoAction();
    }

    apply {
        spread.apply();
        single.apply();
        direct.apply();
    }
}

control RulesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control RulesCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control RulesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(RulesParser(), RulesVerify(), RulesIngress(), RulesEgress(), RulesCompute(), RulesDeparser()) main;
