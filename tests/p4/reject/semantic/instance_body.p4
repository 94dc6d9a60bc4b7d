extern E {
    E();
    abstract bit<8> f(in bit<8> x);
}
extern Plain {
    Plain();
}
package P(E e);
control Inner() {
    apply {
    }
}
control C() {
    E() none;
    E() wrong = {
        bit<8> f(inout bit<16> x) {
            return 1;
        }
        bit<8> ff(in bit<8> x) {
            return x;
        }
    };
    Plain() plain = {
        bit<8> f(in bit<8> x) {
            return x;
        }
    };
    Inner() inner = {
    };
    apply {
    }
}
P(E()) main;
