extern X {
    Y(int n);
    void f()
    abstract X();
    bit<8> g(in bit<8> a, in b);
}
void h(in bit<8> a);
extern i();
