#include <core.p4>
@name(4)
@deprecated("a" | "b")
@p4runtime_translation("uri", bool)
@twice[1]
@twice("x")
@values[x = { 1, 2 }]
@name("a" ++ "b")
const bit<8> x = 1;
struct S {
    @match(ternary) bit<8> a;
    @match(1 + 1) bit<8> b;
}
control C(@name(1) inout bit<8> x) {
    @noWarn action a() {
    }
    table t {
        key = { x: exact @values[a = x]; }
        actions = { @name(2) a; }
    }
    apply {
    }
}
