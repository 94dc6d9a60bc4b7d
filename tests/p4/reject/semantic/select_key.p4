#include <core.p4>
struct S {
    bit<8> a;
}

parser P(packet_in packet, inout S s) {
    state start {
        transition select(1, { s.a, s.a == 1 }, s) {
            default: accept;
        }
    }
}
