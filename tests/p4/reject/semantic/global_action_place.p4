#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta { }

// Actions of tables in both pipelines.
action again() { resubmit_preserving_field_list(1); }
action copy() { clone(CloneType.I2E, 32w5); }
action around() { recirculate_preserving_field_list(1); }

parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    table t {
        key = { hdr.h.a : exact; }
        actions = { again; copy; NoAction; }
    }
    apply { t.apply(); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    table u {
        key = { hdr.h.a : exact; }
        actions = { again; copy; around; NoAction; }
    }
    apply { u.apply(); }
}
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
