#include <core.p4>
control C(inout bit<8> x) {
    action a() {
    }
    table t {
        default_action = a();
        actions = { a; }
        entries = {
            1: a();
        }
        key = { x: exact; }
    }
    table keyless {
        actions = { a; }
        entries = {
            _: a();
        }
        size = true;
    }
    apply {
        t.apply();
        keyless.apply();
    }
}
