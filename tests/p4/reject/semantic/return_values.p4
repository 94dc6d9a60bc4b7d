#include <core.p4>
void f() {
    return 1;
}

bit<8> g() {
    return;
}
