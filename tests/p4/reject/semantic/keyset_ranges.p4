#include <core.p4>
parser P(packet_in packet, inout bit<8> x) {
    state start {
        transition select(x, x == 1) {
            (9..3, _): accept;
            (_, true &&& true): accept;
        }
    }
}
