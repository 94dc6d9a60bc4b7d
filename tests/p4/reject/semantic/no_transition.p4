#include <core.p4>
parser P(packet_in packet, inout bit<8> x) {
    state start {
        x = true;
    }
}
