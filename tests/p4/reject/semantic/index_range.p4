#include <core.p4>
header H {
    bit<8> a;
}

control C(inout H[4] s) {
    apply {
        s[4].a = 1;
        s[-1].a = 1;
    }
}
