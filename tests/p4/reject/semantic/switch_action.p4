#include <core.p4>
control C(inout bit<8> x) {
    action a() {
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
        switch (t.apply().action_run) {
            a: {
            }
            b: {
            }
            1: {
            }
        }
    }
}
