// The headers that the firewall reads: Ethernet, ARP, IPv4, IPv6, and those behind them as far as a decision needs them.
//
// Only Ethernet and IP are taken out of the packet. The parser only looks at the rest, so that nothing has to be put back. Fragments, options and
// extension headers end the parser: nothing behind them is believed.

#ifndef HOLDFAST_FIREWALL_PACKET_P4
#define HOLDFAST_FIREWALL_PACKET_P4

const bit<16> ETHERTYPE_ARP = 0x0806;

const bit<8> PROTOCOL_ICMP   = 1;
const bit<8> PROTOCOL_ICMPV6 = 58;

// IPv4 addresses as IPv6 addresses (RFC 4291, section 2.5.5.2): tables and flows have one form of address.
#define MAPPED(address) (80w0 ++ 16w0xffff ++ address)

// The kinds of packets.
typedef bit<4> kind_t;
const kind_t KIND_OTHER        = 0;  // of a protocol without ports
const kind_t KIND_TCP          = 1;
const kind_t KIND_UDP          = 2;
const kind_t KIND_ECHO_REQUEST = 3;
const kind_t KIND_ECHO_REPLY   = 4;
const kind_t KIND_ERROR        = 5;  // ICMP about a packet of a flow
const kind_t KIND_ICMP         = 6;  // any other ICMP
const kind_t KIND_NEIGHBOUR    = 7;  // neighbour discovery
const kind_t KIND_DHCP         = 8;

// RFC 826.
header arp_t {
    bit<16>        hardware_type;
    bit<16>        protocol_type;
    bit<8>         hardware_length;
    bit<8>         protocol_length;
    bit<16>        operation;
    mac_t          sender_mac;
    ipv4_address_t sender_ip;
    mac_t          target_mac;
    ipv4_address_t target_ip;
}

// RFC 9293, section 3.1, without the options.
header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq;
    bit<32> ack;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// RFC 792 and RFC 4443, with the identifier of echoes.
header icmp_t {
    bit<8>  type;
    bit<8>  code;
    bit<16> checksum;
    bit<16> identifier;
    bit<16> sequence;
}

// An error, and of the packet that caused it the IP header and eight bytes.
header icmp_error_t {
    bit<64>        icmp;
    bit<4>         version;
    bit<4>         ihl;
    bit<40>        before_flags;
    bit<3>         flags;
    bit<13>        frag_offset;
    bit<8>         ttl;
    bit<8>         protocol;
    bit<16>        hdr_checksum;
    ipv4_address_t src_addr;
    ipv4_address_t dst_addr;
    bit<64>        first;
}

header icmp_error_v6_t {
    bit<64>        icmp;
    bit<4>         version;
    bit<44>        before_next_header;
    bit<8>         next_header;
    bit<8>         hop_limit;
    ipv6_address_t src_addr;
    ipv6_address_t dst_addr;
    bit<64>        first;
}

// RFC 4861, sections 4.3 and 4.4: solicitations and advertisements of neighbours.
header neighbour_t {
    bit<64>        icmp;
    ipv6_address_t target;
}

const bit<8> TCP_FIN = 0x01;
const bit<8> TCP_SYN = 0x02;
const bit<8> TCP_RST = 0x04;
const bit<8> TCP_ACK = 0x10;
const bit<8> TCP_CONTROL = 0x17;  // the four

// No window scale option (RFC 7323, section 2).
const bit<4> UNSCALED = 15;

struct headers_t {
    packet_out_t packet_out;
    packet_in_t  packet_in;
    ethernet_t   ethernet;
    arp_t        arp;
    ipv4_t       ipv4;
    ipv6_t       ipv6;
}

struct metadata_t {
    // The flow that the packet belongs to. Of an ICMP error: that of the packet that caused it, with the sender of that packet as source.
    bit<128> src;
    bit<128> dst;
    bit<8>   protocol;
    bit<16>  src_port;  // of an echo: the identifier
    bit<16>  dst_port;
    kind_t   kind;
    bit<1>   is_echo;   // flows of echoes have a direction, because both ends may use one identifier
    bit<1>   is_reply;
    // ICMP and neighbour discovery.
    bit<8>   type;
    bit<8>   code;
    bit<128> target;
    // TCP; `seq` also of the packet that caused an error.
    bit<32>  seq;
    bit<32>  ack;
    bit<16>  window;
    bit<8>   flags;
    bit<4>   data_offset;
    bit<4>   scale;
    bit<320> options;
    bit<16>  udp_length;
}

// Looks at the options of a TCP header of this many words.
#define READ_OPTIONS(name, bits, up, next) \
    state name { \
        meta.options = (bit<320>)(packet.lookahead<bit<(160 + bits)>>()[bits - 1:0]) << up; \
        transition next; \
    }
#define TCP_OPTIONS(name, bits) READ_OPTIONS(name, bits, (320 - bits), scan_options)
#define FEW_TCP_OPTIONS(name, bits) READ_OPTIONS(name, bits, (160 - bits), few_options)

parser FirewallParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_ARP:  parse_arp;
            default:        accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        verify(hdr.arp.hardware_type == 1 && hdr.arp.protocol_type == ETHERTYPE_IPV4 && hdr.arp.hardware_length == 6 &&
               hdr.arp.protocol_length == 4, error.ParserInvalidArgument);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        meta.src = MAPPED(hdr.ipv4.src_addr);
        meta.dst = MAPPED(hdr.ipv4.dst_addr);
        meta.protocol = hdr.ipv4.protocol;
        transition select(hdr.ipv4.ihl, hdr.ipv4.flags & 1, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0, 0, PROTOCOL_TCP):  parse_tcp;
            (5, 0, 0, PROTOCOL_UDP):  parse_udp;
            (5, 0, 0, PROTOCOL_ICMP): parse_icmp;
            default:                  accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        meta.src = hdr.ipv6.src_addr;
        meta.dst = hdr.ipv6.dst_addr;
        meta.protocol = hdr.ipv6.next_header;
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP:    parse_tcp;
            PROTOCOL_UDP:    parse_udp;
            PROTOCOL_ICMPV6: parse_icmpv6;
            default:         accept;
        }
    }

    state parse_tcp {
        tcp_t tcp = packet.lookahead<tcp_t>();
        meta.kind = KIND_TCP;
        meta.src_port = tcp.src_port;
        meta.dst_port = tcp.dst_port;
        meta.seq = tcp.seq;
        meta.ack = tcp.ack;
        meta.window = tcp.window;
        meta.flags = tcp.flags;
        meta.data_offset = tcp.data_offset;
        meta.scale = UNSCALED;
        // The window scale is in segments that open a connection.
        transition select(tcp.flags & TCP_SYN, tcp.data_offset) {
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
            default:       accept;
        }
    }

    FEW_TCP_OPTIONS(options_1, 32)
    FEW_TCP_OPTIONS(options_2, 64)
    TCP_OPTIONS(options_3, 96)
    TCP_OPTIONS(options_4, 128)
    TCP_OPTIONS(options_5, 160)
    TCP_OPTIONS(options_6, 192)
    TCP_OPTIONS(options_7, 224)
    TCP_OPTIONS(options_8, 256)
    TCP_OPTIONS(options_9, 288)
    TCP_OPTIONS(options_10, 320)

    // Some targets shift by at most 256 bits at once.
    state few_options {
        meta.options = meta.options << 160;
        transition scan_options;
    }

    // Ends, because zeros follow the options, and a zero is their end.
    state scan_options {
        transition select(meta.options[319:304]) {
            0x0000 &&& 0xff00: accept;
            0x0100 &&& 0xff00: skip_one_byte;
            0x0303:            take_scale;
            default:           skip_option;
        }
    }

    state skip_one_byte {
        meta.options = meta.options << 8;
        transition scan_options;
    }

    // A length of 64 or more is past the end. The rest is shifted in two steps, by at most 252 bits each: some targets' amounts have 8 bits.
    state skip_option {
        verify(meta.options[311:304] >= 2, error.ParserInvalidArgument);
        bit<8> half = meta.options[309:304] ++ 2w0;
        bit<2> past = meta.options[311:310];
        meta.options = meta.options << half;
        meta.options = meta.options << half;
        transition select(past) {
            0:       scan_options;
            default: accept;
        }
    }

    // More than 14 means 14 (RFC 7323, section 2.3).
    state take_scale {
        meta.scale = meta.options[303:296] > 14 ? 4w14 : meta.options[299:296];
        transition accept;
    }

    state parse_udp {
        udp_t udp = packet.lookahead<udp_t>();
        meta.kind = KIND_UDP;
        meta.src_port = udp.src_port;
        meta.dst_port = udp.dst_port;
        meta.udp_length = udp.length;
#ifdef BRIDGED
        transition select(hdr.ipv6.isValid(), udp.src_port, udp.dst_port) {
            (false, 68, 67):  is_dhcp;
            (false, 67, 68):  is_dhcp;
            (true, 546, 547): is_dhcp;
            (true, 547, 546): is_dhcp;
            default:          accept;
        }
    }

    state is_dhcp {
        meta.kind = KIND_DHCP;
#endif
        transition accept;
    }

    state parse_icmp {
        icmp_t icmp = packet.lookahead<icmp_t>();
        meta.kind = KIND_ICMP;
        meta.type = icmp.type;
        meta.code = icmp.code;
        meta.src_port = icmp.identifier;
        transition select(icmp.type, icmp.code) {
            (8, 0):  echo_request;
            (0, 0):  echo_reply;
            (3, _):  parse_error;
            (11, _): parse_error;
            (12, _): parse_error;
            default: accept;
        }
    }

    state parse_icmpv6 {
        icmp_t icmp = packet.lookahead<icmp_t>();
        meta.kind = KIND_ICMP;
        meta.type = icmp.type;
        meta.code = icmp.code;
        meta.src_port = icmp.identifier;
        transition select(icmp.type, icmp.code) {
            (128, 0): echo_request;
            (129, 0): echo_reply;
            (1, _):   parse_error_v6;
            (2, _):   parse_error_v6;
            (3, _):   parse_error_v6;
            (4, _):   parse_error_v6;
#ifdef BRIDGED
            (133, 0): is_discovery;
            (134, 0): is_discovery;
            (135, 0): parse_neighbour;
            (136, 0): parse_neighbour;
            (137, 0): is_discovery;
#endif
            default:  accept;
        }
    }

#ifdef BRIDGED
    state is_discovery {
        meta.kind = KIND_NEIGHBOUR;
        transition accept;
    }

    state parse_neighbour {
        meta.kind = KIND_NEIGHBOUR;
        meta.target = packet.lookahead<neighbour_t>().target;
        transition accept;
    }
#endif

    state echo_request {
        meta.kind = KIND_ECHO_REQUEST;
        meta.is_echo = 1;
        transition accept;
    }

    state echo_reply {
        meta.kind = KIND_ECHO_REPLY;
        meta.is_echo = 1;
        meta.is_reply = 1;
        transition accept;
    }

    state parse_error {
        icmp_error_t about = packet.lookahead<icmp_error_t>();
        verify(about.version == 4 && about.ihl == 5 && about.frag_offset == 0, error.ParserInvalidArgument);
        meta.src = MAPPED(about.src_addr);
        meta.dst = MAPPED(about.dst_addr);
        meta.protocol = about.protocol;
        meta.src_port = about.first[63:48];
        meta.dst_port = about.first[47:32];
        meta.seq = about.first[31:0];
        meta.kind = KIND_ERROR;
        transition select(about.protocol, about.first[63:48]) {
            (PROTOCOL_TCP, _):       accept;
            (PROTOCOL_UDP, _):       accept;
            (PROTOCOL_ICMP, 0x0800): about_echo_request;
            (PROTOCOL_ICMP, 0):      about_echo_reply;
            (PROTOCOL_ICMP, _):      about_icmp;
            default:                 about_other;
        }
    }

    state parse_error_v6 {
        icmp_error_v6_t about = packet.lookahead<icmp_error_v6_t>();
        verify(about.version == 6, error.ParserInvalidArgument);
        meta.src = about.src_addr;
        meta.dst = about.dst_addr;
        meta.protocol = about.next_header;
        meta.src_port = about.first[63:48];
        meta.dst_port = about.first[47:32];
        meta.seq = about.first[31:0];
        meta.kind = KIND_ERROR;
        transition select(about.next_header, about.first[63:48]) {
            (PROTOCOL_TCP, _):         accept;
            (PROTOCOL_UDP, _):         accept;
            (PROTOCOL_ICMPV6, 0x8000): about_echo_request;
            (PROTOCOL_ICMPV6, 0x8100): about_echo_reply;
            (PROTOCOL_ICMPV6, _):      about_icmp;
            default:                   about_other;
        }
    }

    // The eight bytes of an echo end with its identifier and its number.
    state about_echo_request {
        meta.is_echo = 1;
        meta.src_port = meta.seq[31:16];
        meta.dst_port = 0;
        transition accept;
    }

    state about_echo_reply {
        meta.is_echo = 1;
        meta.is_reply = 1;
        meta.src_port = meta.seq[31:16];
        meta.dst_port = 0;
        transition accept;
    }

    // No flow has such packets.
    state about_icmp {
        meta.kind = KIND_ICMP;
        transition accept;
    }

    state about_other {
        meta.src_port = 0;
        meta.dst_port = 0;
        transition accept;
    }
}

control FirewallVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUM(verify_checksum, hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, hdr.ipv4);
    }
}

control FirewallComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
#ifndef BRIDGED
        IPV4_CHECKSUM(update_checksum, hdr.ipv4.isValid(), hdr.ipv4);
#endif
    }
}

control FirewallDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

#endif
