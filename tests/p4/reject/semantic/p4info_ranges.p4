// Numbers that the control plane cannot be told.
#include <core.p4>
#include <v1model.p4>
header h_t {
    bit<8> a;
    bit<8> b;
}

@controller_header("packet_in")
header in_t {
    bit<9> port;
    varbit<16> rest;
}

struct headers_t {
    h_t h;
    in_t first;
}

struct metadata_t {
    bit<8> x;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<8>>(2147483648) v;

    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a) {
            v: accept;
            default: accept;
        }
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<1>>(2147483648) r;

    action a(@id(0) bit<8> x) {
    }

    table t {
        key = { hdr.h.a: exact; }
        actions = { a; NoAction; }
        size = 4294967297;
    }

    apply {
        r.write(0, 1);
        t.apply();
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
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
