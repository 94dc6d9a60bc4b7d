// Header stacks: next, last, indexes known and not known, push and pop.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<16> c;
}

header label_t {
    bit<20> label;
    bit<3>  tc;
    bit<1>  bottom;
    bit<8>  ttl;
}

struct headers_t {
    h_t h;
    label_t[4] labels;
}

struct metadata_t {
    bit<2> i;
    bit<20> top;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition labels;
    }

    state labels {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom, hdr.labels.lastIndex) {
            (1, _): accept;
            (0, 0..2): labels;
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
        meta.i = (bit<2>) hdr.h.a;
        meta.top = hdr.labels[meta.i].label;
        hdr.labels[meta.i].ttl = hdr.labels[0].ttl - 1;
        if (hdr.labels[meta.i].isValid()) {
            hdr.labels[meta.i].setInvalid();
        }
        hdr.labels.pop_front(1);
        hdr.labels.push_front(2);
        hdr.labels[0] = { 16, 0, 0, 64 };
        hdr.labels[1].setValid();
        hdr.labels[1] = hdr.labels[3];
        for (label_t label in hdr.labels) {
            meta.top = meta.top ^ label.label;
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
