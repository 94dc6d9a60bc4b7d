// Controls within controls: one applied once, one twice, one by its type, with constructor parameters.
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

control Count(in bit<8> key, inout bit<8> total)(bit<32> size, bit<8> step) {
    register<bit<8>>(size) cells;
    bit<8> old;

    action add(bit<8> more) {
        total = total + old + more;
    }

    table limits {
        key = {
            key: exact;
        }
        actions = {
            add;
            NoAction;
        }
        default_action = add(step);
    }

    apply {
        cells.read(old, (bit<32>) key);
        if (old == 255) {
            return;
        }
        cells.write((bit<32>) key, old + step);
        limits.apply();
    }
}

control Clear(out bit<8> x) {
    apply {
        x = 0;
    }
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
    Count(16, 1) once;
    Count(32, 2) twice;
    @name("renamed")
    Count(64, 3) other;

    apply {
        once.apply(hdr.h.a, meta.x);
        twice.apply(hdr.h.b, meta.x);
        twice.apply(hdr.h.a + 1, hdr.h.b);
        other.apply(meta.x, meta.x);
        Clear.apply(meta.x);
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
