control c(inout bit<8> x) {
    action a(bit<8> v) { x = v; }
    table t {
        key = {
            x;
            x : ;
            x : exact;
        };
        actions = { a, b; c; }
        size 16;
        default_action = a(1);
        entries = {
            1 a(1);
            2 : a(2);
            priority = 1 + 2 : 3 : a(3);
            priority = n : 4 : a(4);
        }
    }
    apply { t.apply(); }
}
