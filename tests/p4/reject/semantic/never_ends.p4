#include <core.p4>
parser P(packet_in packet, inout bit<8> x) {
    state start {
        x = x + 1;
        transition select(x) {
            1: start;
            _: next;
        }
    }
    state next {
        transition start;
    }
    state end {
        transition accept;
    }
}
