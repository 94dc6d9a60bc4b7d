#include <core.p4>
control C(inout bit<8> x) {
    table t {
        actions = {
            NoAction;
        }
    }
    apply {
        if (t.apply().action_run == 1) {
        }
        if (t.apply().hti) {
        }
    }
}
