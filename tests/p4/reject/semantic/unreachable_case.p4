#include <core.p4>
parser P(packet_in packet, inout bit<8> x) {
    state start {
        transition select(x) {
            _: accept;
            1: accept;
            2: nowhere;
        }
    }
}
