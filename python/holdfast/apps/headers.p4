// Ethernet and IP as every application parses them, and the checksum field list of IPv4.

#ifndef HOLDFAST_HEADERS_P4
#define HOLDFAST_HEADERS_P4

typedef bit<9>   port_t;
typedef bit<48>  mac_t;
typedef bit<32>  ipv4_address_t;
typedef bit<128> ipv6_address_t;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;
// Link discovery (IEEE 802.1AB): never forwarded, always the controller's.
const bit<16> ETHERTYPE_LLDP = 0x88cc;

const bit<8> PROTOCOL_IPV4 = 4;
const bit<8> PROTOCOL_TCP  = 6;
const bit<8> PROTOCOL_UDP  = 17;
const bit<8> PROTOCOL_IPV6 = 41;

header ethernet_t {
    mac_t   dst_addr;
    mac_t   src_addr;
    bit<16> ether_type;
}

// RFC 791, section 3.1, without the options.
header ipv4_t {
    bit<4>         version;
    bit<4>         ihl;
    bit<8>         diffserv;
    bit<16>        total_len;
    bit<16>        identification;
    bit<3>         flags;
    bit<13>        frag_offset;
    bit<8>         ttl;
    bit<8>         protocol;
    bit<16>        hdr_checksum;
    ipv4_address_t src_addr;
    ipv4_address_t dst_addr;
}

header ipv4_options_t {
    varbit<320> options;
}

// RFC 8200, section 3.
header ipv6_t {
    bit<4>         version;
    bit<8>         traffic_class;
    bit<20>        flow_label;
    bit<16>        payload_len;
    bit<8>         next_header;
    bit<8>         hop_limit;
    ipv6_address_t src_addr;
    ipv6_address_t dst_addr;
}

// The fields that the header checksum covers, without the checksum itself.
#define IPV4_CHECKSUM_FIELDS(ip) \
    ip.version, ip.ihl, ip.diffserv, ip.total_len, ip.identification, ip.flags, \
    ip.frag_offset, ip.ttl, ip.protocol, ip.src_addr, ip.dst_addr

// A header checksum of v1model: statement is verify_checksum or update_checksum.
#define IPV4_CHECKSUM(statement, when, ip) \
    statement(when, { IPV4_CHECKSUM_FIELDS(ip) }, ip.hdr_checksum, HashAlgorithm.csum16)

// Those of a header with and without options.
#define IPV4_CHECKSUMS(statement, when, ip, ip_options) \
    IPV4_CHECKSUM(statement, when && ip.isValid() && !ip_options.isValid(), ip); \
    statement(when && ip_options.isValid(), { IPV4_CHECKSUM_FIELDS(ip), ip_options.options }, ip.hdr_checksum, \
              HashAlgorithm.csum16)

// Packets from and to the controller carry these in front of the Ethernet header.
@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> _pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> _pad;
}

// The port of the controller; the switch must be started with the same number.
#ifndef CPU_PORT
#define CPU_PORT 510
#endif

#endif
