// verify_checksum before ingress, update_checksum after egress, each under its condition.

#include <core.p4>
#include <v1model.p4>

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  diffserv;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> hdr_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

struct headers_t { ipv4_t data; }
struct meta_t { }

#define FIELDS(h) { h.version, h.ihl, h.diffserv, h.total_len, h.identification, h.flags, h.frag_offset, h.ttl, \
                    h.protocol, h.src_addr, h.dst_addr }

#define HAS_VERIFY
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.data.ihl == 5, FIELDS(hdr.data), hdr.data.hdr_checksum, HashAlgorithm.csum16);
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = sm.checksum_error == 1 ? 9w2 : 9w1;
        hdr.data.ttl = hdr.data.ttl - 7;
    }
}

#define HAS_COMPUTE
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.data.version == 4, FIELDS(hdr.data), hdr.data.hdr_checksum, HashAlgorithm.csum16);
    }
}

#include "include/rest.p4"
