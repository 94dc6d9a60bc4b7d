extern void f<T>(in T x);
extern void g<T>(in T x, in T y);
control C(inout bit<8> x) {
    apply {
        f(5);
        f("text");
        f({ a = x, b = x });
        g(x, 5);
        x = { 1, 2 } == { 1, 2 } ? x : 8w1;
        x = x / -1;
        x = -5 % x;
    }
}
