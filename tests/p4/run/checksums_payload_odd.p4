// Sums of 16-bit words over an odd number of bytes and the payload behind them: the first byte of the payload completes the last word.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<4>  high;
    bit<4>  low;
    bit<16> checksum;
    bit<16> exclusive;
    bit<16> half;
}

struct headers_t { data_t data; }
struct meta_t { }

#define HAS_VERIFY
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum_with_payload(true, { hdr.data.high, hdr.data.low }, hdr.data.checksum, HashAlgorithm.csum16);
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
        update_checksum_with_payload(true, { hdr.data.high, hdr.data.low }, hdr.data.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(true, { hdr.data.high, hdr.data.low }, hdr.data.exclusive, HashAlgorithm.xor16);
        // Half a byte: zero bits fill it before the payload.
        update_checksum_with_payload(true, { hdr.data.high }, hdr.data.half, HashAlgorithm.xor16);
    }
}

#include "include/rest.p4"
