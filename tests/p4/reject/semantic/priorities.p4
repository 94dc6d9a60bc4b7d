#include <core.p4>
control C(inout bit<8> x) {
    action a() {
    }
    table exact_only {
        key = { x: exact; }
        actions = { a; }
        entries = {
            priority = 10: 1: a();
            2: a();
        }
    }
    table first {
        key = { x: ternary; }
        actions = { a; }
        entries = {
            1: a();
            priority = 10: 2: a();
        }
    }
    table fixed {
        key = { x: ternary; }
        actions = { a; }
        const entries = {
            priority = 10: 1: a();
        }
    }
    apply {
    }
}
