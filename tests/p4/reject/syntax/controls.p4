control none(inout bit<8> x) {
    action a() { }
}
control two(inout bit<8> x) {
    apply { x = 1; }
    apply { x = 2; }
    action late() { }
}
control no_params {
    apply { }
}
