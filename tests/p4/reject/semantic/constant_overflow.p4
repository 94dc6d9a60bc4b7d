#include <core.p4>
control C(inout bit<8> x) {
    apply {
        x = 256;
        x = -1;
        x = 4w3 ++ 4w17;
        bit<0> error_too;
    }
}
