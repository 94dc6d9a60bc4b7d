#include <core.p4>
struct S {
    bit<8> length;
}

control C(inout bit<8> x) {
    S s;
    apply {
        s.lenght = 1;
    }
}
