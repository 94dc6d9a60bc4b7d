// resubmit: the packet as it arrived, through the parser and ingress once more, with the named metadata.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> type;
    bit<8> rounds;
}

struct headers_t { data_t data; }
struct meta_t {
    @field_list(3)
    bit<8> rounds;
    bit<8> lost;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        meta.rounds = meta.rounds + 1;
        if (meta.lost == 0 && meta.rounds < 4) {
            meta.lost = 1;
            hdr.data.a = 0xFF;
            resubmit_preserving_field_list(3);
        }
        hdr.data.rounds = meta.rounds;
        hdr.data.type = (bit<8>)sm.instance_type;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
