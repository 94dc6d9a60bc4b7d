// Loops, break, continue, and switch on values.
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
    bit<8> x;
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
        for (bit<8> i = 0; i < hdr.h.a; i = i + 1) {
            if (i == 5) {
                continue;
            }
            bit<8> fresh;
            fresh = fresh + i;
            meta.x = meta.x + fresh;
            if (meta.x > 100) {
                break;
            }
        }
        for (bit<8> i in 250..255) {
            meta.x = meta.x ^ i;
        }
        for (bit<8> v in (list<bit<8>>) { 1, 2, hdr.h.b }) {
            meta.x = meta.x + v;
        }
        switch (hdr.h.b) {
            1:
            2: {
                meta.x = 1;
            }
            0xff: {
                return;
            }
            default: {
                meta.x = 2;
            }
        }
        hdr.h.c = 9;
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
