#include <core.p4>
control C(inout bit<8> x) {
    action a(bit<8> v) {
        x = v;
    }

    action b() {
    }

    table t {
        actions = {
            x;
            b;
        }
        default_action = 5;
    }
    apply {
        t.apply();
    }
}
