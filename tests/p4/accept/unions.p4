// Header unions: at most one member is valid.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<16> c;
}

header v4_t {
    bit<32> addr;
}

header v6_t {
    bit<128> addr;
}

header_union ip_t {
    v4_t v4;
    v6_t v6;
}

struct headers_t {
    h_t h;
    ip_t ip;
    ip_t inner;
}

struct metadata_t {
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a) {
            4: v4;
            6: v6;
            default: accept;
        }
    }

    state v4 {
        packet.extract(hdr.ip.v4);
        transition accept;
    }

    state v6 {
        packet.extract(hdr.ip.v6);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.ip.isValid()) {
            hdr.inner = hdr.ip;
            hdr.ip.v4.setValid();
            hdr.ip.v4.addr = hdr.inner.v6.addr[31:0];
        }
        if (hdr.ip == hdr.inner) {
            hdr.inner.v6 = { 1 };
        }
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
