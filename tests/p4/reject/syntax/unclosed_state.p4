parser p(inout bit<8> x) {
    state start {
        x = 1;
        transition next;
    state next {
        transition accept;
    }
}
