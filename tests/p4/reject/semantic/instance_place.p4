#include <core.p4>
extern E {
    E();
}
control C(inout bit<8> x) {
    apply {
    }
}
parser P(packet_in packet) {
    C() c;
    state start {
        E() e;
        transition accept;
    }
}
package Q();
C() top;
control D(inout bit<8> x) {
    P() p;
    Q() q;
    E() e;
    action a() {
        E() inside;
    }
    apply {
        C() c;
        c.apply(x);
    }
}
void f() {
    E() e;
}
