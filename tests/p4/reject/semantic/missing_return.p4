#include <core.p4>
bit<8> f(in bool b) {
    if (b) {
        return 1;
    }
}
