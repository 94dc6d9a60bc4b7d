#include <core.p4>
action a() {
}

void f() {
    a();
}
