// Parameters are never aliases of each other, also not through a header union: one member that becomes valid makes the others invalid
// when it is copied back, and not before (specification, "Calling convention" and "Operations on header unions").
#include <core.p4>
#include <v1model.p4>

header kind_t {
    bit<8> kind;
    bit<8> seen;
}

header a_t {
    bit<8> v;
}

header b_t {
    bit<16> w;
}

header_union u_t {
    a_t a;
    b_t b;
}

struct headers_t {
    kind_t kind;
    u_t u;
}

struct metadata_t {
}

action both(inout a_t x, inout b_t y, inout kind_t kind) {
    x.setValid();
    x.v = 5;
    if (y.isValid()) {
        kind.seen = 1;
    }
}

action reads(inout a_t x, in b_t y, inout kind_t kind) {
    x.setValid();
    x.v = 5;
    if (y.isValid()) {
        kind.seen = 1;
    }
}

void function(inout a_t x, in b_t y, inout kind_t kind) {
    x.setValid();
    x.v = 5;
    if (y.isValid()) {
        kind.seen = 1;
    }
}

action outs(out a_t x, out b_t y) {
    y.setValid();
    y.w = 7;
    x.setValid();
    x.v = 1;
    x.setInvalid();
}

control Sub(inout a_t x, in b_t y, inout kind_t kind) {
    apply {
        x.setValid();
        x.v = 5;
        if (y.isValid()) {
            kind.seen = 1;
        }
    }
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.kind);
        packet.extract(hdr.u.b);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Sub() sub;

    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.kind.kind == 1) {
            both(hdr.u.a, hdr.u.b, hdr.kind);
        } else if (hdr.kind.kind == 2) {
            reads(hdr.u.a, hdr.u.b, hdr.kind);
        } else if (hdr.kind.kind == 3) {
            function(hdr.u.a, hdr.u.b, hdr.kind);
        } else if (hdr.kind.kind == 4) {
            sub.apply(hdr.u.a, hdr.u.b, hdr.kind);
        } else {
            outs(hdr.u.a, hdr.u.b);
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
