#include <core.p4>
const bit<8> N = 1;

struct S {
    N n;
}
