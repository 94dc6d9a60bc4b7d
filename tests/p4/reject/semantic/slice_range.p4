#include <core.p4>
control C(inout bit<8> x) {
    apply {
        bit<4> a = x[8:5];
        a = x[0:3];
    }
}
