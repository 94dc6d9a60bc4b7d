#include <core.p4>
header H {
    bit<8> b;
}

struct S {
    bit<8> a;
}

parser P(packet_in packet, inout S s, in H h) {
    state start {
        transition select(1, { s.a, s.a == 1 }, s, h) {
            default: accept;
        }
    }
}
