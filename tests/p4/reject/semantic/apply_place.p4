#include <core.p4>
control C(inout bit<8> x) {
    table t {
        actions = {
            NoAction;
        }
    }

    action a() {
        t.apply();
    }
    apply {
        t.apply();
    }
}

parser P(packet_in packet) {
    bit<8> x;
    C() c;

    state start {
        c.apply(x);
        transition accept;
    }
}
