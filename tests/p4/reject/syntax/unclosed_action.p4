control c(inout bit<8> x) {
    action a() {
        x = 1;
    action b() { x = 2; }
    table t {
        actions = { a; b; }
    }
    apply { t.apply(); }
}
