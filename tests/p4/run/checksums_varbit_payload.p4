// Sums of 16-bit words over a varbit of an odd number of bytes: the data behind it, a field or the payload, goes on in the same word.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<16>    bytes;
    bit<16>    checksum;
    bit<16>    inner;
    varbit<32> options;
    bit<16>    tail;
}

struct headers_t { data_t data; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data, 8 * (bit<32>)packet.lookahead<bit<16>>());
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
    }
}

#define HAS_COMPUTE
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(true, { hdr.data.options, hdr.data.tail }, hdr.data.inner, HashAlgorithm.csum16);
        update_checksum_with_payload(true, { hdr.data.bytes, hdr.data.options }, hdr.data.checksum, HashAlgorithm.csum16);
    }
}

#include "include/rest.p4"
