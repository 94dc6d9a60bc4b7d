// Checksums over header and payload, of even and odd length.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<16> a;
    bit<16> checksum;
    bit<16> b;
}

struct headers_t { data_t data; }
struct meta_t { }

#define HAS_VERIFY
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum_with_payload(true, { hdr.data.a, hdr.data.b }, hdr.data.checksum, HashAlgorithm.csum16);
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
        update_checksum_with_payload(true, { hdr.data.a, hdr.data.b }, hdr.data.checksum, HashAlgorithm.csum16);
    }
}

#include "include/rest.p4"
