#include <core.p4>
control C(inout bit<8> x) {
    bit<8> counter;
    apply {
        coutner = 1;
        x = y;
        x = future;
    }
}

const bit<8> future = 1;
