#include <core.p4>
control C(inout bit<8> x) {
    action a(bit<8> v) {
        x = v;
    }

    action b() {
    }

    table t {
        key = {
            x: lpm;
        }
        actions = {
            b;
        }
        const entries = {
            0x0f &&& 0x0f: b();
        }
    }
    apply {
        t.apply();
    }
}
