#include <core.p4>
control C(inout bit<8> x) {
    bool b;
    apply {
        bit<1> a = b[0:0];
    }
}
