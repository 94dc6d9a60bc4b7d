#include <core.p4>
control C(inout bit<8> x) {
    action a(bit<8> v) {
        x = v;
    }

    action b() {
    }

    table t {
        key = {
            x: exact;
        }
        actions = {
            @tableonly a;
            @defaultonly b;
        }
        const entries = {
            1: b();
        }
        default_action = a(1);
    }
    apply {
        t.apply();
    }
}
