#include <core.p4>
control C(inout bit<8> x) {
    bit<16> a;
    apply {
        x = a;
        x = true;
        if (x) {
        }
    }
}
