header H { bit<8> a; }
control c() {
    H stack[4];
    X() x[2];
    apply { H[4] fine; }
}
