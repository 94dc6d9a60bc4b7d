#include <core.p4>
struct Pair<A, B> {
    A a;
    B b;
}

struct S {
    Pair<bit<8>> p;
}
