#include <core.p4>
parser P(packet_in packet, out bit<8> x) {
    state start {
        packet.extrct(x);
        transition accept;
    }
}
