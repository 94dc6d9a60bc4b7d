// The identity gives the first eight bytes of longer data, as the reference target does; check values of the others.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<72> text;
    bit<64> of_text;
    bit<64> of_parts;
    bit<128> wide;
    bit<16> narrow;
    bit<32> crc32;
    bit<16> crc16;
    bit<16> xor16;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<72> text = hdr.data.text;
        hash(hdr.data.of_text, HashAlgorithm.identity, 64w0, { text }, 64w0xffffffffffffffff);
        // Nine bytes of three fields; the last byte does not count.
        hash(hdr.data.of_parts, HashAlgorithm.identity, 64w0, { text[71:40], text[39:8], text[7:0] }, 64w0xffffffffffffffff);
        // The result is wider than what the identity gives.
        hash(hdr.data.wide, HashAlgorithm.identity, 128w1, { text, text }, 128w1 << 100);
        hash(hdr.data.narrow, HashAlgorithm.identity, 16w0, { text[71:56], text }, 32w0x10000);
        hash(hdr.data.crc32, HashAlgorithm.crc32, 32w0, { text }, 64w0x100000000);
        hash(hdr.data.crc16, HashAlgorithm.crc16, 32w0, { text }, 32w0x10000);
        hash(hdr.data.xor16, HashAlgorithm.xor16, 16w0, { text }, 32w0x10000);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
