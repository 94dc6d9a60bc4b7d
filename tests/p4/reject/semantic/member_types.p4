#include <core.p4>
extern E {
    E();
}
extern G<T> {
    G();
    void f(in T x);
}
header V {
    varbit<8> x;
}
struct S<T> {
    tuple<T, void> x;
}
header_union U<T> {
    tuple<T, T> x;
}
parser P(packet_in packet, in tuple<E> e) {
    value_set<int>(4) numbers;
    G<E>() g;
    state start {
        packet.lookahead<void>();
        packet.lookahead<V>();
        transition accept;
    }
}
const S<_> s = { x = { 0, 0 } };
