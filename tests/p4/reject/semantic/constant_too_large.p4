#include <core.p4>
const int A = 1 << 200000;
const int B = A * A;
const int C = 1 << 1000000;
