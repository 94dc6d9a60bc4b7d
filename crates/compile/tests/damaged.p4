#include <core.p4>
#include <v1model.p4>
// -- constants
const bit<8> ONE = 1;
/*T1*/
// -- types
header h_t { bit<8> a; bit<8> b; }
// -- another header
header other_t { bit<8> x; bit<8> y; }
// -- structs
struct headers { h_t h; other_t o; }
struct meta { bit<8> kind; }
// -- a function
bit<8> helper(in bit<8> x) { return x + ONE; }
// -- the parser
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start {
        /*T2*/
        p.extract(hdr.h);
        transition select(hdr.h.a) { 1: next_one; default: accept; }
    }
    state next_one { transition accept; }
}
// -- the verification
control V(inout headers hdr, inout meta m) { apply { } }
// -- ingress
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    apply {
        /*T3*/
        if (hdr.h.isValid()) {
            hdr.h.b = 8w3;
        /*brace*/ }
        /*T4*/
        /*T6*/
    }
}
// -- egress
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    action set() { m.kind = 2; }
    @name("other") table t {
        key = { hdr.h.a : exact; }
        actions = { set; NoAction; }
        size = 16;
    }
    apply { t.apply(); }
}
// -- the sums
control C(inout headers hdr, inout meta m) {
    action t4() { m.kind = 4; }
    apply { /*T5*/ t4(); }
}
// -- the deparser
/*end*/
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); /*T7*/ } }
// -- main
V1Switch(P(), V(), I(), E(), C(), D()) main;
