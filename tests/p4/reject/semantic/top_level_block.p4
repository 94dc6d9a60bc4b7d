#include <core.p4>
control D() {
    apply {
    }
}

D() d;

control C(inout bit<8> x) {
    apply {
        d.apply();
    }
}
