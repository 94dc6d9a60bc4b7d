#include <core.p4>
control C(inout bit<8> x) {
    int<8> s;
    apply {
        x = x << s;
    }
}
