#include <core.p4>
parser P(packet_in packet, inout bit<8> x) {
    state start {
        transition select(x, x) {
            1: accept;
            (1, 2, 3): accept;
            (1, true): accept;
        }
    }
}
