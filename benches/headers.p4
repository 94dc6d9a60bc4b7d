// Headers that the benchmarks share.

#ifndef BENCH_HEADERS_P4
#define BENCH_HEADERS_P4

typedef bit<9>  port_t;
typedef bit<48> mac_t;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;

header ethernet_t {
    mac_t   dst_addr;
    mac_t   src_addr;
    bit<16> ether_type;
}

// RFC 791, section 3.1, without options.
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
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

#define IPV4_CHECKSUM_FIELDS(ip) \
    { ip.version, ip.ihl, ip.dscp, ip.ecn, ip.total_len, ip.identification, ip.flags, ip.frag_offset, ip.ttl, \
      ip.protocol, ip.src_addr, ip.dst_addr }

#endif
