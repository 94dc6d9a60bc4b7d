// Value sets of one member and of several.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<16> c;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
}

struct both_t {
    bit<8>  a;
    @match(ternary)
    bit<16> c;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    value_set<bit<8>>(4) one;
    @name("pairs")
    value_set<both_t>(8) two;

    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.b) {
            one: more;
            7: accept;
            default: reject;
        }
    }

    state more {
        transition select(hdr.h.a, hdr.h.c) {
            two: accept;
            (1, _): accept;
            default: reject;
        }
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
