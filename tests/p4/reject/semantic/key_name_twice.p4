#include <core.p4>
#include <v1model.p4>

header e_t { bit<8> v; bit<8> w; }
struct headers { e_t[2] s; e_t e; }
struct meta { }

parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.s.next);
        transition accept;
    }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    table by_annotation {
        key = {
            hdr.s[0].v : exact @name("k");
            hdr.s[1].v : exact @name("k");
        }
        actions = { NoAction; }
    }
    // The name of one is the expression of the other.
    table by_expression {
        key = {
            hdr.e.v : ternary;
            hdr.s[1].v : lpm @name("hdr.e.v");
        }
        actions = { NoAction; }
    }
    // The same in different tables is right.
    table apart {
        key = { hdr.e.w : exact @name("k"); }
        actions = { NoAction; }
    }
    apply {
        by_annotation.apply();
        by_expression.apply();
        apart.apply();
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
