struct S {
    bit<8> a[4];
    bit<8>;
    b c d;
    bit<8> e;
}
header H { bit<> f; bit<8 g; varbit h; }
