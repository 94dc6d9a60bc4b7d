#include <core.p4>
parser P(packet_in packet) {
    state start {
        transition accept;
    }

    state start {
        transition reject;
    }
}

parser Q(packet_in packet) {
    state start {
        transition last;
    }

    state last {
        transition accept;
    }

    state last {
        transition reject;
    }
}
