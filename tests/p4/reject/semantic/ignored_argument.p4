#include <core.p4>
bit<8> f(in bit<8> a) {
    return a;
}

control C(inout bit<8> x) {
    apply {
        x = f(_);
    }
}
