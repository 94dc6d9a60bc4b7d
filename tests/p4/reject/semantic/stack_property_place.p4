#include <core.p4>
header H {
    bit<8> a;
}

control C(inout H[4] s) {
    apply {
        s.next.a = 1;
    }
}
