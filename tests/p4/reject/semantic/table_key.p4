#include <core.p4>
struct S {
}

control C(inout bit<8> x) {
    S s;

    table t {
        key = {
            s: exact;
            x + 1: exact;
            5: exact;
        }
        actions = {
            NoAction;
        }
    }
    apply {
        t.apply();
    }
}
