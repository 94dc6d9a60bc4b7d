#include <core.p4>
control C(inout bit<8> x) {
    bit<16> a;
    int<8> s;
    bit<8> t;
    apply {
        x = x + a;
        x = x && x;
        bool b = s == t;
    }
}
