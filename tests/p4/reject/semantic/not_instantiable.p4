#include <core.p4>
struct S {
}

S() s;
