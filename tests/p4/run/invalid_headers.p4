// Fields of an invalid header read as zero, writes to them are lost, and setValid starts from zero.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> operation;
    bit<8> result;
}

header tag_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t {
    data_t data;
    tag_t  tag;
}
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.tag.a = 0x55;
        if (hdr.data.operation == 1) {
            hdr.data.result = hdr.tag.a + 1;
        } else if (hdr.data.operation == 2) {
            hdr.tag.setValid();
            hdr.tag.b = 0x22;
        } else if (hdr.data.operation == 3) {
            hdr.tag.setValid();
            hdr.tag.a = 0x33;
            hdr.tag.setInvalid();
            hdr.data.result = hdr.tag.a;
            hdr.tag.setValid();
        } else if (hdr.data.operation == 4) {
            hdr.tag.setValid();
            hdr.tag.a = 0x44;
            hdr.tag.setValid();
            hdr.data.setInvalid();
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
