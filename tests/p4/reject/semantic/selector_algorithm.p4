#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> key; }
struct headers_t { data_t data; }
struct meta_t { }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action_selector(HashAlgorithm.random, 16, 8) ways;
    table t {
        key = {
            hdr.data.key: exact;
            hdr.data.key: selector;
        }
        actions = { NoAction; }
        implementation = ways;
    }
    apply {
        t.apply();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}
V1Switch(P(), V(), I(), E(), V(), D()) main;
