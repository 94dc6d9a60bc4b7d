#include <core.p4>
control C(in bit<8> x) {
    action a(bit<8> p) {
        p = 1;
    }

    apply {
        x = 1;
        x[3:0] = 1;
    }
}
