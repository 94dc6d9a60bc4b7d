// recirculate: the packet as the deparser made it, from the parser on.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> type;
    bit<8> rounds;
}

header pushed_t { bit<8> v; }

struct headers_t {
    pushed_t pushed;
    data_t   data;
}
struct meta_t {
    @field_list(1)
    bit<8> rounds;
}

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        meta.rounds = meta.rounds + 1;
        hdr.data.type = (bit<8>)sm.instance_type;
        sm.egress_spec = 1;
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.rounds = meta.rounds;
        if (meta.rounds < 3) {
            hdr.pushed.setValid();
            hdr.pushed.v = 0xA0 + meta.rounds;
            recirculate_preserving_field_list(1);
        }
    }
}

#include "include/rest.p4"
