#include <core.p4>
header H {
    bit<8> a;
}

control C(inout H[4] s) {
    apply {
        s.push_front(-1);
    }
}
