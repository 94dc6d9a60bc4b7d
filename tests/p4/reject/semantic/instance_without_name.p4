#include <core.p4>
control D() {
    apply {
    }
}

control C(inout bit<8> x) {
    apply {
        D();
    }
}
