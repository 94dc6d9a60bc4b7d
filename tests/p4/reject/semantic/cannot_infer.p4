#include <core.p4>
extern T make<T>();

control C(inout bit<8> x) {
    apply {
        make();
    }
}
