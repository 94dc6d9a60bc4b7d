// A line that ends without its semicolon is reported where it ends, and the next line is read as usual.
const bit<8> A = 1
struct S {
    bit<8> a
    bit<8> b;
}
control c(inout S s) {
    bit<8> x = 2
    action set(bit<8> v) { s.a = v }
    table t {
        key = { s.a : exact }
        actions = { set; }
        size = 16
    }
    apply {
        t.apply()
        s.b = x
        return
    }
}
