#include <core.p4>
const int A = -7 / 2;
