#include <core.p4>
control D()(bit<8> n) {
    apply {
    }
}

control C(inout bit<8> x) {
    apply {
        D.apply();
    }
}
