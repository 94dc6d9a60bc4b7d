// Hashes over fields of variable length, the custom CRCs with the parameters they start with, and random.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>  bits;
    bit<8>  tag;
    bit<32> crc32;
    bit<16> crc16;
    bit<32> identity;
    bit<16> sum;
    bit<32> custom32;
    bit<16> custom16;
    bit<8>  random;
}

header options_t { varbit<48> options; }

struct headers_t {
    data_t    data;
    options_t options;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.options, (bit<32>)hdr.data.bits);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hash(hdr.data.crc32, HashAlgorithm.crc32, 32w0, { hdr.data.tag, hdr.options.options, 8w0x39 }, 64w0x100000000);
        hash(hdr.data.crc16, HashAlgorithm.crc16, 16w0, { hdr.options.options, hdr.data.tag }, 32w0x10000);
        hash(hdr.data.identity, HashAlgorithm.identity, 32w0, { hdr.data.tag, hdr.options.options }, 64w0x100000000);
        hash(hdr.data.sum, HashAlgorithm.xor16, 16w0, { hdr.data.tag, hdr.options.options }, 32w0x10000);
        hash(hdr.data.custom32, HashAlgorithm.crc32_custom, 32w0, { hdr.options.options }, 64w0x100000000);
        hash(hdr.data.custom16, HashAlgorithm.crc16_custom, 16w0, { hdr.options.options }, 32w0x10000);
        bit<8> drawn;
        hash(drawn, HashAlgorithm.random, 8w10, { hdr.data.tag }, 8w5);
        if (drawn >= 10 && drawn < 15) {
            hdr.data.random = 0xAA;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
