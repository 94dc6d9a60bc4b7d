extern void f(in bit<8> a);
extern void f(in bit<8> b);
extern E {
    E();
    E();
    void g(in bit<8> a);
    void g(in bit<16> a);
}
control C(inout bit<8> x) {
    apply {
        f(x);
        f(b = x);
    }
}
