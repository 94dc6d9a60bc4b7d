#include <core.p4>
parser P(packet_in packet, inout bit<8> x) {
    state start {
        transition parse_ipv4;
    }

    state parse_ipv6 {
        transition accept;
    }
}
