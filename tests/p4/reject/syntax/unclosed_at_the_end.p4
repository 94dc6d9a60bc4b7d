struct S {
    bit<8> a;
