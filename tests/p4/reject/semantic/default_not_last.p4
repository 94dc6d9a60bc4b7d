control C(inout bit<8> x) {
    apply {
        switch (x) {
            1: { x = 2; }
            default: { x = 3; }
            2: { x = 4; }
        }
    }
}
