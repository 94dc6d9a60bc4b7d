#include <core.p4>
header H {
    bit<8> a;
}

struct S {
    H[0] none;
    H[-3] fewer;
}
