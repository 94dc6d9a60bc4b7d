// == and != of values wider than 64 bits that differ only above the low 64: metadata that has its first value, and a field.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>   result;
    bit<200> value;
}

struct headers_t {
    data_t data;
}
struct meta_t {
    bit<200> unsigned;
    int<129> signed;
}

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        hdr.data.result = 0;
        if (meta.unsigned == 200w1 << 64) {
            hdr.data.result = hdr.data.result | 1;
        }
        transition select(meta.signed) {
            129s1 << 64: above;
            default: accept;
        }
    }

    state above {
        hdr.data.result = hdr.data.result | 2;
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (meta.signed != 129s1 << 127) {
            hdr.data.result = hdr.data.result | 4;
        }
        if (meta.unsigned != 200w1 << 199 && meta.unsigned == 0) {
            hdr.data.result = hdr.data.result | 8;
        }
        if (hdr.data.value == 200w1 << 150) {
            hdr.data.result = hdr.data.result | 0x10;
        }
        if (hdr.data.value != 0) {
            hdr.data.result = hdr.data.result | 0x20;
        }
        bit<200> zero = 0;
        if ((hdr.data.value == 0 ? zero : 200w1 << 128) == 200w1 << 128) {
            hdr.data.result = hdr.data.result | 0x40;
        }
        switch (meta.unsigned) {
            200w1 << 64: { hdr.data.result = hdr.data.result | 0x80; }
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
