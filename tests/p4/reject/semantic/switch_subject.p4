#include <core.p4>
struct S {
}

control C(inout bit<8> x) {
    S s;
    apply {
        switch (s) {
            default: {
            }
        }
    }
}
