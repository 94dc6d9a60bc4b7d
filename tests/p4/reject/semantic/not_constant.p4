#include <core.p4>
control C(inout bit<8> x) {
    const bit<8> n = x;
    apply {
        bit<8> a = x[n:0];
    }
}
