#include <core.p4>
struct S {
    bit<8> a;
    bit<8> b;
}

control C(inout bit<8> x) {
    S s;
    apply {
        s = { 1 };
        s = { 1, 2, 3 };
    }
}
