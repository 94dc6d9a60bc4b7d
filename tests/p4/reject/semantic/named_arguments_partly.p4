#include <core.p4>
#include <v1model.p4>
// All arguments of a call have names, or none: of functions, actions, controls, constructors, default actions, entries and methods.
header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta { }
bit<8> f(in bit<8> a, in bit<8> b) { return a - b; }
control Sub(inout bit<8> x, in bit<8> y)(bit<8> k, bit<8> l) { apply { x = y + k - l; } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    Sub(k = 1, 2) sub;
    register<bit<8>>(4) r;
    action put(bit<8> v, bit<8> w) { hdr.h.a = v; hdr.h.b = w; }
    table t {
        key = { hdr.h.a : exact; }
        actions = { put; }
        const entries = { 1 : put(w = 1, 2); }
        default_action = put(v = 1, 2);
    }
    apply {
        hdr.h.a = f(a = 1, 2);
        hdr.h.a = f(1, b = 2);
        hdr.h.a = f(b = 1, 2);
        put(1, w = 2);
        r.write(index = 1, 2);
        t.apply();
    }
}
