// Operators, casts, slices and their widths.
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
    bit<32> w;
    int<8> s;
    bool t;
    bit<9> p;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        meta.w = (bit<32>) hdr.h.c * 3 + (bit<32>) (hdr.h.a ++ hdr.h.b);
        meta.w = meta.w |+| 32w0xfffffff0;
        meta.w = meta.w << 3 >> hdr.h.a;
        meta.s = (int<8>) hdr.h.a >> 1;
        meta.s = -meta.s |-| 8s100;
        meta.t = meta.s < 0 || (hdr.h.a > hdr.h.b && hdr.h.c != 0);
        meta.w[15:8] = hdr.h.b;
        meta.w[7:0] = meta.w[31:24] & ~hdr.h.a;
        meta.w[hdr.h.b +: 4] = 4w5;
        hdr.h.c = meta.t ? hdr.h.c / 3 : hdr.h.c % 7;
        hdr.h.c ^= 0x0f0f;
        meta.p = (bit<9>) (bit<1>) meta.t;
        standard_metadata.egress_spec = meta.p;
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
