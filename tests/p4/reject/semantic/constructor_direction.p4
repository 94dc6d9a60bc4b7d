#include <core.p4>
control C(inout bit<8> x)(in bit<8> n) {
    apply {
    }
}
