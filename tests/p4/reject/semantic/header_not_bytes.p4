#include <core.p4>
header H {
    bit<3> a;
    bit<7> b;
}
parser P(packet_in packet, out H h) {
    state start {
        packet.extract(h);
        transition accept;
    }
}
