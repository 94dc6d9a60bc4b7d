#include <core.p4>
extern E {
    E();
}
extern F {
    F(in bit<8> x);
    void f(in string name);
    void g(in E e);
}
control Inner(inout bit<8> x);
control Body(inout bit<8> x) {
    apply {
    }
}
parser P(packet_in packet, Inner c) {
    state start {
        transition accept;
    }
}
control C(packet_in packet, Body b)(P p) {
    action a(E e) {
    }
    action b(int x) {
    }
    apply {
    }
}
control Wrapper(inout bit<8> x)(Inner inner) {
    apply {
        inner.apply(x);
    }
}
bit<8> f(E e) {
    return 1;
}
bit<8> g(in int x, @optional in bit<8> y) {
    return 1;
}
package Q(in bit<8> x);
extern void defaults(out bit<8> x = 1, inout bit<8> y = 2, @optional in bit<8> z = 3);
