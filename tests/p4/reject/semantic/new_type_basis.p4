#include <core.p4>
struct S {
}

type S T;
