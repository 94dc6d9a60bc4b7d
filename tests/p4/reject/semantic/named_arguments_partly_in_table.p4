#include <core.p4>
#include <v1model.p4>
// All arguments of an entry's action have names, or none, also of an action with bound arguments.
header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
control I(inout headers hdr, inout standard_metadata_t s) {
    action put(bit<8> v, bit<8> w) { hdr.h.a = v; hdr.h.b = w; }
    action add(in bit<8> d, bit<8> v, bit<8> w) { hdr.h.a = v + d; hdr.h.b = w; }
    table t {
        key = { hdr.h.a : exact; }
        actions = { put; add(hdr.h.b); NoAction; }
        const entries = {
            1 : put(w = 1, 2);
            2 : put(1, w = 2);
            3 : add(d = hdr.h.b, 1, 2);
            4 : add(hdr.h.b, v = 1, w = 2);
            5 : add(d = hdr.h.b, w = 1, v = 2);
        }
        default_action = NoAction();
    }
    apply {
        t.apply();
    }
}
