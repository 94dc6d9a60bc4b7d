// Headers of a subscriber's line, as the user planes and the balancer parse them.

#ifndef HOLDFAST_BNG_WIRE_P4
#define HOLDFAST_BNG_WIRE_P4

const bit<16> ETHERTYPE_ARP       = 0x0806;
const bit<16> ETHERTYPE_VLAN      = 0x8100;
const bit<16> ETHERTYPE_QINQ      = 0x88a8;
const bit<16> ETHERTYPE_DISCOVERY = 0x8863;
const bit<16> ETHERTYPE_SESSION   = 0x8864;
// Between a balancer and the planes behind it: a tag with the number of an access port. No standard has given away this number.
const bit<16> ETHERTYPE_PORT_TAG  = 0x9100;

const bit<16> PPP_IPV4 = 0x0021;
const bit<16> PPP_IPV6 = 0x0057;
const bit<16> PPP_LCP  = 0xc021;

// RFC 2516, section 5.
const bit<8> PADI = 0x09;
const bit<8> PADR = 0x19;
const bit<8> PADT = 0xa7;

// RFC 1661, section 5.
const bit<8> LCP_ECHO_REQUEST = 9;
const bit<8> LCP_ECHO_REPLY   = 10;

const bit<8> PROTOCOL_ICMPV6 = 58;

const bit<8> TCP_SYN = 0x02;

// IEEE 802.1Q, clause 9.6; `ether_type` is that of what follows.
header tag_t {
    bit<3>  pcp;
    bit<1>  dei;
    bit<12> vid;
    bit<16> ether_type;
}

// RFC 2516, section 4.
header pppoe_t {
    bit<4>  version;
    bit<4>  type;
    bit<8>  code;
    bit<16> session_id;
    bit<16> length;
}

header ppp_t {
    bit<16> protocol;
}

// RFC 1661, section 5.
header lcp_t {
    bit<8>  code;
    bit<8>  identifier;
    bit<16> length;
}

header lcp_magic_t {
    bit<32> number;
}

header tcp_t {
    bit<96> before;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header tcp_options_t {
    varbit<288> options;
}

// RFC 9293, section 3.2.
header mss_t {
    bit<8>  kind;
    bit<8>  length;
    bit<16> value;
}

#endif
