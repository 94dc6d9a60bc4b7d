bit<8> global;
table t { actions = { } }
value_set<bit<8>>(4) s;
parser p() {
    action a() { }
    state start { transition accept; }
    bit<8> late;
}
control c() {
    struct S { }
    void f() { }
    value_set<bit<8>>(4) vs;
    apply {
        action b() { }
        const bit<8> A = 1;
    }
}
X() x = {
    const bit<8> B = 1;
};
