#include <core.p4>
control I(packet_out p, inout standard_metadata_t s) {
    register<bit<8>>(4) r;
    apply {
        mark_to_drop(s);
    }
}
