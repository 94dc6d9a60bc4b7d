control c(inout bit<8> x) {
    action a() { x = 1; } }
    table t {
        actions = { a; }
    }
    apply { t.apply(); }
}

const bit<8> FINE = 1;
const bit<8> BAD = ;
