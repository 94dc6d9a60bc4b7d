#include <core.p4>
struct S {
    bit<0> a;
    bit<-1> b;
    int<70000> c;
}
