#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
}
struct headers { h_t h; }
struct meta { }

// A table among the controls inside of it, wherever it is applied.
control Inner(inout headers hdr) {
    table inner {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
    }
    apply { inner.apply(); }
}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}
control V(inout headers hdr, inout meta m) {
    action set() { hdr.h.a = 1; }
    table t {
        key = { hdr.h.b : exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (t.apply().hit) { hdr.h.b = 1; }
    }
}
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    apply { Inner.apply(hdr); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers hdr, inout meta m) {
    apply { Inner.apply(hdr); }
}
control D(packet_out p, in headers hdr) {
    table t {
        key = { hdr.h.b : exact; }
        actions = { NoAction; }
    }
    apply {
        switch (t.apply().action_run) { NoAction: { } }
        p.emit(hdr.h);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
