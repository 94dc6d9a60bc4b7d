#include <core.p4>
control C(inout bit<8> x) {
    int<16> a;
    apply {
        x = (bit<8>) a;
        bool b = (bool) x;
    }
}
