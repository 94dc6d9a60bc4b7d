#include <core.p4>
const int A = 1 << 100000;
