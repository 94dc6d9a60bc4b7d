#include <core.p4>
parser P(packet_in packet) {
    state start {
        transition accept;
    }

    state start {
        transition reject;
    }
}
