#include <core.p4>
control C(inout bit<8> x) {
    apply {
        bit<16> a = x ++ 1;
        tuple<bit<8>, bit<8>> t = { 1, 1 << x };
    }
}
