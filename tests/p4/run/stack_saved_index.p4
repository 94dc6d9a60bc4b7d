// An lvalue is evaluated once, before the call or the right side: a later change of its index does not move it (specification, "Calling
// convention", whose example is the first case, and "Assignment statement").
#include <core.p4>
#include <v1model.p4>

header kind_t {
    bit<8> kind;
    bit<8> i;
}

header item_t {
    bit<8> v;
}

struct headers_t {
    kind_t kind;
    item_t[4] s;
}

struct metadata_t {
}

bit<8> moves(inout bit<8> i) {
    i = 3;
    return 0x66;
}

void adds(inout bit<8> x, in bit<8> y) {
    x = x + y;
}

void moves_and_sets(inout bit<8> i, inout item_t x) {
    i = 3;
    x.v = 0x77;
}

action global_action(out bit<8> i, inout item_t x) {
    i = 3;
    x.v = 0x77;
}

control Sub(inout bit<8> i, inout item_t x) {
    apply {
        i = 3;
        x.v = 0x77;
    }
}

parser Last(packet_in packet, inout item_t[4] s, inout item_t x) {
    state start {
        packet.extract(s.next);
        x.v = 0xff;
        transition accept;
    }
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Last() last;

    state start {
        packet.extract(hdr.kind);
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        transition select(hdr.kind.kind) {
            9: in_parser;
            default: rest;
        }
    }

    state rest {
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        transition accept;
    }

    state in_parser {
        last.apply(packet, hdr.s, hdr.s.last);
        packet.extract(hdr.s.next);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Sub() sub;

    action own(inout item_t x) {
        hdr.kind.i = 3;
        x.v = 0x77;
    }

    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.kind.kind == 1) {
            adds(hdr.s[hdr.kind.i].v, moves(hdr.kind.i));
        } else if (hdr.kind.kind == 2) {
            moves_and_sets(hdr.kind.i, hdr.s[hdr.kind.i]);
        } else if (hdr.kind.kind == 3) {
            global_action(hdr.kind.i, hdr.s[hdr.kind.i]);
        } else if (hdr.kind.kind == 4) {
            own(hdr.s[hdr.kind.i]);
        } else if (hdr.kind.kind == 5) {
            sub.apply(hdr.kind.i, hdr.s[hdr.kind.i]);
        } else if (hdr.kind.kind == 6) {
            hdr.s[hdr.kind.i].v = moves(hdr.kind.i);
        } else if (hdr.kind.kind == 7) {
            hdr.s[hdr.kind.i].v += moves(hdr.kind.i);
        } else if (hdr.kind.kind == 8) {
            hdr.s[hdr.kind.i].v[3:0] = moves(hdr.kind.i)[3:0];
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
