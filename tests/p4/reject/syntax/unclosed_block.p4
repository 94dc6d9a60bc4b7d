// The `apply` block of the first control lacks its brace; the second control is none the worse for it.
control first(inout bit<8> x) {
    apply {
        if (x == 1) {
            x = 2;
    }
}

control second(inout bit<8> x) {
    apply {
        x = = 3;
    }
}
