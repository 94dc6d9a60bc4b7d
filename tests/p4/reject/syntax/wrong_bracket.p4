control c(inout bit<8> x) {
    apply {
        x = (x + 1];
        x = f(x, 2;
        x = 3;
    }
}
