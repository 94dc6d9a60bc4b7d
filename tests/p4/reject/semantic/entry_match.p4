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
            b;
        }
        const entries = {
            _: b();
            1 &&& 3: b();
            256: b();
            (1, 2): b();
            true: b();
        }
    }
    apply {
        t.apply();
    }
}
