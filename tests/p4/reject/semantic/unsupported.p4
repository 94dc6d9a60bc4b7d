#include <core.p4>
extern Counter {
    Counter();
    abstract bit<8> f(in bit<8> x);
}
control C(inout bit<8> x) {
    Counter() counter = {
        bit<8> f(in bit<8> x) {
            return this.f(x);
        }
    };
    apply {
    }
}
