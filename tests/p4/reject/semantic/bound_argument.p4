#include <core.p4>
control C(inout bit<8> x, inout bit<8> y) {
    action a(inout bit<8> z, bit<8> data) {
        z = data;
    }
    table t {
        actions = { a(x); }
        default_action = a(y, 1);
    }
    table right {
        actions = { a(x); }
        default_action = a(x, 1);
    }
    apply {
        t.apply();
        right.apply();
    }
}
