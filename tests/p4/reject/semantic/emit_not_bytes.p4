#include <core.p4>
#include <v1model.p4>
header nibble_t { bit<4> value; }
struct headers_t { nibble_t nibble; }
struct meta_t { }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
        packet.emit(hdr.nibble.value);
    }
}
V1Switch(P(), V(), I(), I(), V(), D()) main;
