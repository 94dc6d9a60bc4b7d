action NoAction(bit<8> x) {
}
control C() {
    table t {
        actions = { }
    }
    apply {
        t.apply();
    }
}
