#include <core.p4>
control C(inout bit<8> x) {
    bit<8> a;
    bit<8> a;
    apply {
    }
}
