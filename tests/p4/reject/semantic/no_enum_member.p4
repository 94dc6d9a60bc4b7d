#include <core.p4>
enum Color {
    Red,
    Green
}

control C(inout bit<8> x) {
    Color e;
    apply {
        if (e == Color.Gren) {
            x = 1;
        }
    }
}
