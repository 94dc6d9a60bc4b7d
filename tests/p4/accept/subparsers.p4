// Parsers within parsers, local variables, loops back to the start, lookahead and advance.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<16> c;
}

header tlv_t {
    bit<8> kind;
    bit<8> value;
}

struct headers_t {
    h_t h;
    tlv_t first;
    tlv_t second;
}

struct metadata_t {
    bit<8> n;
}

parser Tlv(packet_in packet, out tlv_t tlv, in bit<8> wanted)(bit<8> end) {
    bit<8> seen = 0;

    state start {
        packet.extract(tlv);
        seen = seen + 1;
        transition select(tlv.kind) {
            end: reject;
            0 &&& 0xf0: accept;
            default: check;
        }
    }

    state check {
        verify(tlv.kind == wanted, error.NoMatch);
        transition select(seen < 3) {
            true: start;
            false: accept;
        }
    }
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Tlv(0xff) tlv;
    bit<8> rounds = 2;

    state start {
        rounds = rounds - 1;
        transition select(packet.lookahead<bit<8>>(), rounds) {
            (0, 1..2): skip;
            (_, 0): accept;
            default: body;
        }
    }

    state skip {
        packet.advance(8);
        transition start;
    }

    state body {
        packet.extract(hdr.h);
        tlv.apply(packet, hdr.first, 1);
        meta.n = hdr.first.value;
        tlv.apply(packet, hdr.second, meta.n);
        meta.n = meta.n + hdr.second.value;
        transition accept;
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
