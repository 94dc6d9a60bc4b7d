#include <core.p4>
header H {
    varbit<8>[2] s;
}

header I {
    error e;
}

struct S {
    int i;
    int[2] j;
}

header_union U {
    bit<8> b;
}
