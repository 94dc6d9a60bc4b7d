#include <core.p4>
control C(inout bit<8> x, inout bit<8> z) {
    action a(in bit<8> p, bit<8> v) { x = p + v; }
    table other_argument {
        key = { x : exact; }
        actions = { a(p = x); }
        default_action = a(v = 1, p = z);
    }
    table no_such_argument {
        key = { x : exact; }
        actions = { a(p = x); }
        default_action = a(v = 1, q = x);
    }
    table lacking {
        key = { x : exact; }
        actions = { a(p = x); }
        default_action = a(p = x);
    }
    table twice {
        key = { x : exact; }
        actions = { a(p = x); }
        default_action = a(p = x, v = 1, v = 2);
    }
    apply {
        other_argument.apply();
    }
}
