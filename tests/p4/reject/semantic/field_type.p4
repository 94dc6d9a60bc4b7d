#include <core.p4>
header H {
    bit<8>[2] s;
}

header I {
    error e;
}

struct S {
    int i;
}

header_union U {
    bit<8> b;
}
