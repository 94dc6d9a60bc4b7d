// The value assigned to a member of a header union may come from another member, which the assignment makes invalid (specification,
// "Operations on header unions").
#include <core.p4>
#include <v1model.p4>

header kind_t {
    bit<8> kind;
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
    a_t c;
}

struct headers_t {
    kind_t kind;
    u_t u;
}

struct metadata_t {
}

action set(inout a_t x, in bit<8> v) {
    x.setValid();
    x.v = v;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            2: wide;
            default: narrow;
        }
    }
    state wide {
        packet.extract(hdr.u.b);
        transition accept;
    }
    state narrow {
        packet.extract(hdr.u.c);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.kind.kind == 1) {
            hdr.u.a = hdr.u.c;
        } else if (hdr.kind.kind == 2) {
            hdr.u.a = { hdr.u.b.w[7:0] };
        } else {
            set(hdr.u.a, hdr.u.c.v);
        }
        if (hdr.u.b.isValid() || hdr.u.c.isValid()) {
            sm.egress_spec = 2;
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { }
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.kind);
        packet.emit(hdr.u);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
