#include <core.p4>
control C(inout bit<8> x) {
    action a(bit<8> v) {
        x = v;
    }

    action b() {
    }

    table t {
        actions = {
            a;
        }
        default_action = a;
    }
    apply {
        t.apply();
    }
}
