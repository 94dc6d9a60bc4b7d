// hash(): base + h % max, with each algorithm that v1model defines exactly.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<48> input;
    bit<32> crc32;
    bit<16> crc16;
    bit<16> csum16;
    bit<16> xor16;
    bit<16> identity;
    bit<16> bounded;
    bit<16> nothing;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<48> v = hdr.data.input;
        hash(hdr.data.crc32, HashAlgorithm.crc32, 32w0, { v }, 33w0x100000000);
        hash(hdr.data.crc16, HashAlgorithm.crc16, 16w0, { v[47:40], v[39:0] }, 32w0x10000);
        hash(hdr.data.csum16, HashAlgorithm.csum16, 16w0, { v }, 32w0x10000);
        hash(hdr.data.xor16, HashAlgorithm.xor16, 16w0, { v }, 32w0x10000);
        hash(hdr.data.identity, HashAlgorithm.identity, 16w0, { v }, 32w0x10000);
        hash(hdr.data.bounded, HashAlgorithm.crc32, 16w10, { v }, 16w100);
        hash(hdr.data.nothing, HashAlgorithm.crc16, 16w7, { v }, 16w1);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
