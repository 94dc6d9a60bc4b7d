#include <core.p4>
struct S {
    bit<8> a;
    bit<8> b;
}

control C(inout bit<8> x) {
    S s;
    apply {
        s = { a = 1 };
        s = { a = 1, b = 2, c = 3 };
    }
}
