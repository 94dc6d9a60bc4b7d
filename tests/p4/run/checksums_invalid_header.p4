// A checksum in a header that is not there is neither wrong nor right, whatever the condition says.

#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> kind; }
header option_t {
    bit<16> a;
    bit<16> checksum;
}

struct headers_t {
    data_t   data;
    option_t option;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.kind) {
            1: option;
            default: accept;
        }
    }
    state option {
        packet.extract(hdr.option);
        transition accept;
    }
}

#define HAS_VERIFY
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(true, { hdr.option.a }, hdr.option.checksum, HashAlgorithm.csum16);
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = sm.checksum_error == 1 ? 9w2 : 9w1;
    }
}

#define HAS_COMPUTE
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(true, { hdr.option.a }, hdr.option.checksum, HashAlgorithm.csum16);
    }
}

#include "include/rest.p4"
