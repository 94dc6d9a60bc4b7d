const bit<8> table = 1;
struct header { bit<8> a; }
control c(inout bit<8> in) { apply { } }
control d() {
    action default() { }
    table key { actions = { } }
    apply {
        bit<8> select;
        bit<8> state;
    }
}
