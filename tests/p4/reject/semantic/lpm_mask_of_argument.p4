#include <core.p4>
#include <v1model.p4>
header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    bit<8> x;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control Routes(inout headers_t hdr)(bit<48> mask) {
    table t {
        key = {
            hdr.ethernet.dst: lpm;
        }
        actions = {
            NoAction;
        }
        const entries = {
            0xff0000000000 &&& mask: NoAction();
        }
    }
    apply {
        t.apply();
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Routes(0xff0000000000) good;
    Routes(0x00ff00000000) bad;
    apply {
        good.apply(hdr);
        bad.apply(hdr);
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
