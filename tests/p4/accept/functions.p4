// Functions, directions, copies of overlapping arguments, and actions called directly.
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
    bit<8> y;
}

bit<8> larger(in bit<8> a, in bit<8> b) {
    if (a > b) {
        return a;
    }
    return b;
}

T second<T>(in T a, in T b) {
    return b;
}

void swap(inout bit<8> a, inout bit<8> b) {
    bit<8> t = a;
    a = b;
    b = t;
}

bit<8> count(inout bit<8> n) {
    n = n + 1;
    return n;
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
    action set(out bit<8> to, in bit<8> value) {
        to = value;
        meta.x = 0;
    }

    action leave(bit<8> why) {
        if (why == 0) {
            return;
        }
        hdr.h.a = why;
        exit;
    }

    apply {
        meta.x = larger(hdr.h.a, larger(hdr.h.b, 7));
        meta.y = second(meta.x, 8w3);
        swap(meta.x, meta.y);
        swap(meta.x, meta.x);
        hdr.h.c = (bit<16>) (count(meta.x) + count(meta.x) * meta.x);
        if (meta.y == 0 && count(meta.y) == 1 || count(meta.x) > 200) {
            set(meta.y, meta.x);
        }
        leave(meta.y);
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
