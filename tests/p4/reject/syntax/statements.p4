control c(inout bit<8> x) {
    apply {
        if (x = 1) { x = 2; }
        x++;
        for (bit<8> i = 0; i < 8; i++) { }
        x + 1;
        x == 2;
        f(x) = 1;
        x + 1 = 2;
        else { x = 1; }
        while (x) { }
        x = 1, y = 2;
        return 1
    }
}
