// In egress packet_length counts the headers that the deparser emits, as they are then, and the payload: no header in the metadata, no
// local one, and none that the compiler needs for an assignment whose sides overlap.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> length;
}

header tag_t { bit<16> tag; }

struct headers_t { data_t data; tag_t tag; }
struct meta_t { tag_t tag; }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        data_t other = hdr.data;
        meta.tag.setValid();
        meta.tag.tag = 7;
        hdr.data = { hdr.data.b, other.a, hdr.data.length };
        if (hdr.data.a == 1) {
            hdr.tag = meta.tag;
        }
        sm.egress_spec = 1;
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.length = (bit<8>)sm.packet_length;
    }
}

#include "include/rest.p4"
