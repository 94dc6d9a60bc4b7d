#include <core.p4>
typedef bit<8> byte;

control C(inout bit<8> x) {
    apply {
        x = byte;
    }
}
