#include <core.p4>
control C(inout bit<8> x) {
    action a(bit<8> data, in bit<8> y) {
    }
    apply {
    }
}
