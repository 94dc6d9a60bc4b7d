// Each of these is one mistake and gets one message.
struct S { bit<8> a; bit<8 b; bit<8> c; }
typedef bit<8 T;
const bit<8> A = f(g(h(1, 2), 3;
action a(in bit<8> x, y) { x = 1; }
control c(inout S s) {
    bit<8> v = {1, {2, 3; };
    apply {
        s.a = (bit<8) s.c;
        s = { a = 1, b 2 };
        if (s.a == 1 { s.b = 2; } else { s.b = 3; }
        switch (s.a) { 1 { } 2: { } }
    }
}
