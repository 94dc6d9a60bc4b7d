#include <core.p4>
void f(out bit<8> y) {
    y = 1;
}

control C(inout bit<8> x) {
    apply {
        f(x + 1);
    }
}
