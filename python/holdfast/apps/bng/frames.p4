// Common parts of this application's user planes: headers of packets, and their parser, checksum and deparser.
//
// PORT_TAG: a balancer is in front, and each frame of a line has, before its own tags, a tag with the number of its access port.

#ifndef HOLDFAST_BNG_PACKET_P4
#define HOLDFAST_BNG_PACKET_P4

#include "wire.p4"
#include "neighbours.p4"

#define IS_LINK_LOCAL 0xfe80 &&& 0xffc0
#define IS_MULTICAST  0xff00 &&& 0xff00

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
#ifdef PORT_TAG
    tag_t          port_tag;
#endif
    tag_t          s_tag;
    tag_t          c_tag;
    pppoe_t        pppoe;
    ppp_t          ppp;
    lcp_t          lcp;
    lcp_magic_t    lcp_magic;
#ifndef AUTH_ONLY
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
    arp_t          arp;
    solicitation_t solicitation;
    tcp_t          tcp;
    tcp_options_t  before_mss;
    mss_t          mss;
#endif
}

struct metadata_t {
    // A line: tags that are absent are 0.
    port_t   port;
    bit<12>  s_vid;
    bit<12>  c_vid;
    bit<16>  tag_bytes;
    // IPv6 for the controller.
    bit<1>   link_control;
    // TCP segments with SYN.
    bit<1>   unparsed;  // options that make no sense, or that are not looked at
    bit<16>  skipped;   // bytes of options in front of the MSS
    bit<16>  left;      // bytes of options that are not looked at yet
    bit<320> options;
}

#define READ_OPTIONS(name, bits, up, next) \
    state name { \
        packet.extract(hdr.tcp); \
        meta.options = (bit<320>)packet.lookahead<bit<bits>>() << up; \
        meta.left = bits / 8; \
        transition next; \
    }
#define SCAN_OPTIONS(name, bits) READ_OPTIONS(name, bits, (320 - bits), scan_options)
#define SCAN_FEW_OPTIONS(name, bits) READ_OPTIONS(name, bits, (160 - bits), few_options)

parser BngParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        meta.port = standard_metadata.ingress_port;
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
#ifdef PORT_TAG
            ETHERTYPE_PORT_TAG:  parse_port_tag;
#else
            ETHERTYPE_QINQ:      parse_s_tag;
            ETHERTYPE_VLAN:      parse_s_tag;
            ETHERTYPE_SESSION:   parse_session;
            ETHERTYPE_DISCOVERY: parse_discovery;
#endif
#ifndef AUTH_ONLY
            ETHERTYPE_IPV4:      parse_ipv4;
            ETHERTYPE_IPV6:      parse_ipv6;
            ETHERTYPE_ARP:       parse_arp;
#endif
            default:             accept;
        }
    }

#ifdef PORT_TAG
    state parse_port_tag {
        packet.extract(hdr.port_tag);
        meta.port = hdr.port_tag.vid[8:0];
        meta.tag_bytes = 4;
        transition select(hdr.port_tag.ether_type) {
            ETHERTYPE_QINQ:      parse_s_tag;
            ETHERTYPE_VLAN:      parse_s_tag;
            ETHERTYPE_SESSION:   parse_session;
            ETHERTYPE_DISCOVERY: parse_discovery;
            default:             accept;
        }
    }
#endif

    state parse_s_tag {
        packet.extract(hdr.s_tag);
        meta.s_vid = hdr.s_tag.vid;
        meta.tag_bytes = meta.tag_bytes + 4;
        transition select(hdr.s_tag.ether_type) {
            ETHERTYPE_VLAN:      parse_c_tag;
            ETHERTYPE_SESSION:   parse_session;
            ETHERTYPE_DISCOVERY: parse_discovery;
            default:             accept;
        }
    }

    state parse_c_tag {
        packet.extract(hdr.c_tag);
        meta.c_vid = hdr.c_tag.vid;
        meta.tag_bytes = meta.tag_bytes + 4;
        transition select(hdr.c_tag.ether_type) {
            ETHERTYPE_SESSION:   parse_session;
            ETHERTYPE_DISCOVERY: parse_discovery;
            default:             accept;
        }
    }

    state parse_discovery {
        packet.extract(hdr.pppoe);
        transition accept;
    }

    state parse_session {
        packet.extract(hdr.pppoe);
        packet.extract(hdr.ppp);
        transition select(hdr.ppp.protocol) {
#ifndef AUTH_ONLY
            PPP_IPV4: parse_ipv4;
            PPP_IPV6: parse_ipv6;
            PPP_LCP:  parse_lcp;
#endif
            default:  accept;
        }
    }

#ifndef AUTH_ONLY
    state parse_lcp {
        packet.extract(hdr.lcp);
        transition select(hdr.lcp.code) {
            LCP_ECHO_REQUEST: parse_magic;
            default:          accept;
        }
    }

    state parse_magic {
        packet.extract(hdr.lcp_magic);
        transition accept;
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): parse_tcp;
            (5, _, _):            accept;
            default:              parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) * 32);
        transition select(hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_TCP): parse_tcp;
            default:           accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        transition select(hdr.ipv6.next_header, hdr.ipv6.dst_addr[127:112]) {
            (PROTOCOL_TCP, _):             parse_tcp;
            (PROTOCOL_ICMPV6, _):          parse_icmpv6;
            (PROTOCOL_UDP, IS_LINK_LOCAL): parse_udp;
            (PROTOCOL_UDP, IS_MULTICAST):  parse_udp;
            default:                       accept;
        }
    }

    // RFC 4861: solicitations of routers, solicitations and advertisements of neighbours.
    state parse_icmpv6 {
        transition select(packet.lookahead<bit<16>>()) {
            0x8500:  is_link_control;
            0x8700:  parse_solicitation;
            0x8800:  is_link_control;
            default: accept;
        }
    }

    state parse_solicitation {
        transition select(hdr.ethernet.ether_type, hdr.ipv6.payload_len) {
            (ETHERTYPE_IPV6, SOLICITATION_BYTES): take_solicitation;  // from the core
            default:                              is_link_control;
        }
    }

    state take_solicitation {
        packet.extract(hdr.solicitation);
        transition is_link_control;
    }

    // RFC 8415, section 7.2.
    state parse_udp {
        transition select(packet.lookahead<bit<32>>()[15:0]) {
            547:     is_link_control;
            default: accept;
        }
    }

    state is_link_control {
        meta.link_control = 1;
        transition accept;
    }

    // A segment's MSS matters where a connection opens (RFC 9293, section 3.7.1).
    state parse_tcp {
        bit<112> start = packet.lookahead<bit<112>>();  // flags last, before them the length and four reserved bits
        transition select(start[7:0] & TCP_SYN, start[15:12]) {
            (0, _):        accept;
            (TCP_SYN, 5):  accept;
            (TCP_SYN, 6):  options_1;
            (TCP_SYN, 7):  options_2;
            (TCP_SYN, 8):  options_3;
            (TCP_SYN, 9):  options_4;
            (TCP_SYN, 10): options_5;
            (TCP_SYN, 11): options_6;
            (TCP_SYN, 12): options_7;
            (TCP_SYN, 13): options_8;
            (TCP_SYN, 14): options_9;
            (TCP_SYN, 15): options_10;
            default:       no_sense;
        }
    }

    SCAN_FEW_OPTIONS(options_1, 32)
    SCAN_FEW_OPTIONS(options_2, 64)
    SCAN_OPTIONS(options_3, 96)
    SCAN_OPTIONS(options_4, 128)
    SCAN_OPTIONS(options_5, 160)
    SCAN_OPTIONS(options_6, 192)
    SCAN_OPTIONS(options_7, 224)
    SCAN_OPTIONS(options_8, 256)
    SCAN_OPTIONS(options_9, 288)
    SCAN_OPTIONS(options_10, 320)

    // Some targets shift by at most 256 bits at once.
    state few_options {
        meta.options = meta.options << 160;
        transition scan_options;
    }

    // Ends, because each step takes a byte at least, zeros follow the options, and a zero is their end.
    state scan_options {
        transition select(meta.options[319:304]) {
            0x0000 &&& 0xff00: accept;
            0x0100 &&& 0xff00: skip_one_byte;
            0x0204:            take_mss;
            0x0200 &&& 0xff00: no_sense;
            0x0000 &&& 0x00fe: no_sense;
            default:           skip_option;
        }
    }

    state skip_one_byte {
        meta.options = meta.options << 8;
        meta.skipped = meta.skipped + 1;
        transition scan_options;
    }

    // A length of 64 or more is past the end. The rest is shifted in two steps, by at most 252 bits each: some targets' amounts have 8 bits.
    state skip_option {
        meta.skipped = meta.skipped + (bit<16>)meta.options[311:304];
        bit<8> half = meta.options[309:304] ++ 2w0;
        bit<2> past = meta.options[311:310];
        meta.options = meta.options << half;
        meta.options = meta.options << half;
        transition select(past) {
            0:       scan_options;
            default: accept;
        }
    }

    state take_mss {
        transition select(meta.skipped + 4 > meta.left) {
            true:  no_sense;
            false: extract_mss;
        }
    }

    state extract_mss {
        packet.extract(hdr.before_mss, (bit<32>)meta.skipped * 8);
        packet.extract(hdr.mss);
        transition accept;
    }

    state no_sense {
        meta.unparsed = 1;
        transition accept;
    }
#endif
}

control BngVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
#ifndef AUTH_ONLY
        IPV4_CHECKSUM(verify_checksum, hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, hdr.ipv4);
#endif
    }
}

// Ingress changes checksums by what it changes (RFC 1624), so that what was wrong stays wrong.
control BngComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control BngDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
#ifdef PORT_TAG
        packet.emit(hdr.port_tag);
#endif
        packet.emit(hdr.s_tag);
        packet.emit(hdr.c_tag);
        packet.emit(hdr.pppoe);
        packet.emit(hdr.ppp);
        packet.emit(hdr.lcp);
        packet.emit(hdr.lcp_magic);
#ifndef AUTH_ONLY
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.arp);
        packet.emit(hdr.solicitation);
        packet.emit(hdr.tcp);
        packet.emit(hdr.before_mss);
        packet.emit(hdr.mss);
#endif
    }
}

#endif
