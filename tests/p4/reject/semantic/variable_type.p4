#include <core.p4>
control C(inout bit<8> x) {
    int i = 1;
    string s;
    apply {
    }
}
