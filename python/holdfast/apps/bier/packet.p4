// The packets of bier.p4: headers, parser and deparser, and what is known of a packet on its way. Which packet goes where is not decided here.

#ifndef HOLDFAST_BIER_PACKET_P4
#define HOLDFAST_BIER_PACKET_P4

// Length of the BitString: 64, 128, 256, 512 or 1024 bits, one for the network.
#ifndef BSL
#define BSL 256
#endif

// log2(BSL) - 5 (RFC 8296, section 2.1.2).
#if BSL == 64
#define BSL_CODE 1
#elif BSL == 128
#define BSL_CODE 2
#elif BSL == 256
#define BSL_CODE 3
#elif BSL == 512
#define BSL_CODE 4
#elif BSL == 1024
#define BSL_CODE 5
#else
#error "BSL must be 64, 128, 256, 512 or 1024"
#endif

// The encapsulation. In an MPLS network (-D MPLS) the BIFT-id is a label at the bottom of the stack, and the nibble behind it tells the packet
// from IP.
#ifdef MPLS
const bit<16> ETHERTYPE_BIER = 0x8847;
const bit<4>  NIBBLE         = 5;
#else
const bit<16> ETHERTYPE_BIER = 0xab37;
const bit<4>  NIBBLE         = 0;
#endif

// The prefix of the switches' loopback and not-via addresses: the ends of the tunnels of this network.
#ifndef LOOPBACKS
#define LOOPBACKS 0x0AFE0000 &&& 0xFFFE0000
#endif

#define PORTS 512

const bit<8> PROTOCOL_IGMP       = 2;
const bit<8> PROTOCOL_GRE        = 47;
const bit<8> PROTOCOL_HOP_BY_HOP = 0;
const bit<8> PROTOCOL_ICMPV6     = 58;

// Next protocols of a BIER header (RFC 8296, section 4).
#ifdef ONE_PLUS_ONE
const bit<6>  BIER_PROTO_ETHERNET = 3;
const bit<16> ETHERTYPE_RTAG      = 0xf1c1;
const bit<32> TAG_BYTES           = 20;  // of the Ethernet header and the R-TAG
#endif
const bit<6>  BIER_PROTO_IPV4     = 4;
const bit<6>  BIER_PROTO_IPV6     = 6;

// Bytes.
const bit<32> ETHERNET_BYTES = 14;
const bit<32> IPV4_BYTES     = 20;
const bit<32> GRE_BYTES      = 4;
const bit<32> BIER_BYTES     = 12 + BSL / 8;

typedef bit<BSL>   bit_string_t;
typedef bit<PORTS> ports_t;

// RFC 8296, section 2, without the BitString.
header bier_t {
    bit<20> bift_id;
    bit<3>  tc;
    bit<1>  s;
    bit<8>  ttl;
    bit<4>  nibble;
    bit<4>  ver;
    bit<4>  bsl;
    bit<20> entropy;
    bit<2>  oam;
    bit<2>  rsv;
    bit<6>  dscp;
    bit<6>  proto;
    bit<16> bfir_id;
}

// Bit position 1 is the least significant bit.
header bier_bits_t {
    bit_string_t bit_string;
}

// RFC 2784, without a checksum.
header gre_t {
    bit<16> flags_and_version;
    bit<16> protocol;
}

// RFC 8200, section 4.3, with 6 bytes of options: what MLD messages have.
header hop_by_hop_t {
    bit<8>  next_header;
    bit<8>  length;
    bit<48> options;
}

header icmpv6_t {
    bit<8>  type;
    bit<8>  code;
    bit<16> checksum;
}

#ifdef ONE_PLUS_ONE
// IEEE 802.1CB, 7.8.
header rtag_t {
    bit<16> reserved;  // sent as zero, not looked at
    bit<16> sequence_number;
    bit<16> ether_type;
}
#endif

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
    ipv4_t         repair;   // outer header of an IP packet on the way to a PQ node (RFC 7490)
    ipv4_t         carrier;  // outer header of a BIER packet in a tunnel
    gre_t          gre;
    bier_t         bier;
    bier_bits_t    bits;
#ifdef ONE_PLUS_ONE
    ethernet_t     inner;
    rtag_t         rtag;
#endif
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
    hop_by_hop_t   hop_by_hop;
    icmpv6_t       icmpv6;
}

// The modes of egress.
const bit<3> AS_IT_IS    = 0;  // ingress has done all
const bit<3> REPLICATE   = 1;  // a copy for the neighbour that the replica says
const bit<3> TO_NEXT_HOP = 2;  // a copy for the neighbour that ingress has chosen
const bit<3> DELIVER     = 3;  // the payload, to a port that has joined
const bit<3> GO_ROUND    = 4;  // the rest of the work, to the parser again

// Field lists: the metadata of another pass of ingress, of a clone in egress, and of a packet that goes round.
const bit<8> REST  = 1;
const bit<8> COPY  = 2;
const bit<8> ROUND = 3;

struct metadata_t {
    // The ingress port, which other targets forget on another pass and in clones.
    @field_list(REST, COPY, ROUND) port_t from_port;

    // The outermost destination is one of the switches' own addresses.
    bit<1> to_router;

    // The BIER packet that is forwarded, which may not have its header yet (at its BFIR).
    @field_list(REST, COPY) bit<20> bift_id;
    @field_list(REST, COPY) bit<20> entropy;
    @field_list(REST, COPY) bit<16> bfir_id;
    @field_list(REST, COPY) bit<1>  imposes;
#ifdef ONE_PLUS_ONE
    @field_list(REST, COPY) bit<1>  tagged;
    @field_list(REST, COPY) bit<16> sequence;
#endif

    // It has been repaired on its way here, and is not repaired again.
    @field_list(COPY, ROUND) bit<1> was_repaired;

    // Another pass: the bits that are left, and the set identifier that follows when none is.
    @field_list(REST) bit<1>       again;
    @field_list(REST) bit_string_t rest;
    @field_list(REST) bit<16>      next_set;

    bit<3>       mode;
    bit<16>      group;
    bit_string_t bits;

    // The same of a clone.
    @field_list(COPY) bit<3>       clone_mode;
    @field_list(COPY) bit<16>      clone_group;
    @field_list(COPY) bit_string_t clone_bits;

    // The copy for a neighbour, which may need tunnels.
    @field_list(COPY) mac_t          src_mac;
    @field_list(COPY) mac_t          dst_mac;
    @field_list(COPY) bit<1>         carried;
    @field_list(COPY) ipv4_address_t carrier_src;
    @field_list(COPY) ipv4_address_t carrier_dst;
    @field_list(COPY) bit<1>         repaired;
    @field_list(COPY) ipv4_address_t repair_src;
    @field_list(COPY) ipv4_address_t repair_dst;
    @field_list(COPY) bit<16>        bier_bytes;  // of the BIER packet with its payload

    // Unicast: the routed address, which is the outermost destination, and the results of the route lookup.
    ipv4_address_t dst_addr;
    bit<1>         routed;
    port_t         port;
}

parser BierParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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
            ETHERTYPE_BIER: parse_bier;
            default:        parse_other;
        }
    }

    // A choice of its own, because BIER is what most packets are (a compiler that weighs paths then has it first).
    state parse_other {
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_outermost;
            ETHERTYPE_IPV6: parse_ipv6;
            default:        accept;
        }
    }

    // Tunnels have no options and are never fragmented. All others are payload of their IPv4 header.
    state parse_outermost {
        ipv4_t ip = packet.lookahead<ipv4_t>();
        transition select(ip.ihl, ip.flags & 1, ip.frag_offset, ip.protocol, ip.dst_addr) {
            (5, 0, 0, PROTOCOL_IPV4, LOOPBACKS): parse_repair;
            (5, 0, 0, PROTOCOL_GRE, LOOPBACKS):  parse_outer_carrier;
            (_, _, _, _, LOOPBACKS):             parse_to_router;
            default:                             parse_ipv4;
        }
    }

    // In no tunnel.
    state parse_to_router {
        meta.to_router = 1;
        transition parse_ipv4;
    }

    state parse_outer_carrier {
        meta.to_router = 1;
        transition parse_carrier;
    }

    state parse_repair {
        meta.to_router = 1;
        packet.extract(hdr.repair);
        verify(hdr.repair.version == 4, error.ParserInvalidArgument);
        ipv4_t ip = packet.lookahead<ipv4_t>();
        transition select(ip.ihl, ip.flags & 1, ip.frag_offset, ip.protocol, ip.dst_addr) {
            (5, 0, 0, PROTOCOL_GRE, LOOPBACKS): parse_carrier;
            default:                            parse_ipv4;
        }
    }

    state parse_carrier {
        packet.extract(hdr.carrier);
        verify(hdr.carrier.version == 4, error.ParserInvalidArgument);
        packet.extract(hdr.gre);
        transition select(hdr.gre.flags_and_version, hdr.gre.protocol) {
            (0, ETHERTYPE_BIER): parse_bier;
            default:             accept;
        }
    }

    // The length of the BitString follows from the BIFT-id, which is of this network's length; a header that says otherwise ends here.
    state parse_bier {
        packet.extract(hdr.bier);
        transition select(hdr.bier.ver, hdr.bier.bsl) {
            (0, BSL_CODE): parse_bits;
            default:       accept;
        }
    }

    state parse_bits {
        packet.extract(hdr.bits);
        transition select(hdr.bier.proto) {
            BIER_PROTO_IPV4:     parse_payload;
            BIER_PROTO_IPV6:     parse_payload_v6;
#ifdef ONE_PLUS_ONE
            BIER_PROTO_ETHERNET: parse_inner;
#endif
            default:             accept;
        }
    }

#ifdef ONE_PLUS_ONE
    state parse_inner {
        packet.extract(hdr.inner);
        transition select(hdr.inner.ether_type) {
            ETHERTYPE_RTAG: parse_rtag;
            default:        accept;
        }
    }

    state parse_rtag {
        packet.extract(hdr.rtag);
        transition select(hdr.rtag.ether_type) {
            ETHERTYPE_IPV4: parse_payload;
            ETHERTYPE_IPV6: parse_payload_v6;
            default:        accept;
        }
    }
#endif

    // The payload is parsed by switches that take it out, not by those that pass it on.
    state parse_payload {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    state parse_payload_v6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl) {
            5:       accept;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, (bit<32>)(hdr.ipv4.ihl - 5) * 32);
        transition accept;
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        transition select(hdr.ipv6.next_header, hdr.ipv6.dst_addr[127:120]) {
            (PROTOCOL_HOP_BY_HOP, 0xff): parse_hop_by_hop;
            default:                     accept;
        }
    }

    state parse_hop_by_hop {
        packet.extract(hdr.hop_by_hop);
        transition select(hdr.hop_by_hop.next_header, hdr.hop_by_hop.length) {
            (PROTOCOL_ICMPV6, 0): parse_icmpv6;
            default:              accept;
        }
    }

    state parse_icmpv6 {
        packet.extract(hdr.icmpv6);
        transition accept;
    }
}

// A payload behind a BIER header is not checked: nobody on its way changes its checksum but by what the TTL needs (RFC 1624), so that the
// receiver sees any damage.
control BierVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUM(verify_checksum, hdr.repair.isValid(), hdr.repair);
        IPV4_CHECKSUM(verify_checksum, hdr.carrier.isValid(), hdr.carrier);
        IPV4_CHECKSUMS(verify_checksum, !hdr.bier.isValid(), hdr.ipv4, hdr.ipv4_options);
    }
}

// Those of the headers that are made here; all others are kept right as their TTL changes.
control BierComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUM(update_checksum, hdr.repair.isValid() && meta.repaired == 1, hdr.repair);
        IPV4_CHECKSUM(update_checksum, hdr.carrier.isValid() && meta.carried == 1, hdr.carrier);
    }
}

control BierDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.repair);
        packet.emit(hdr.carrier);
        packet.emit(hdr.gre);
        packet.emit(hdr.bier);
        packet.emit(hdr.bits);
#ifdef ONE_PLUS_ONE
        packet.emit(hdr.inner);
        packet.emit(hdr.rtag);
#endif
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.hop_by_hop);
        packet.emit(hdr.icmpv6);
    }
}

// A router's decrement, with the header checksum (RFC 1624, equation 3, for a difference of one in the TTL). The TTL must not be 0.
void decrement_ttl(inout ipv4_t ip) {
    ip.ttl = ip.ttl - 1;
    // allow(invalid): an invalid header keeps nothing of it
    bit<17> sum = (bit<17>)ip.hdr_checksum + 0x100;
    bit<16> checksum = sum[15:0] + (bit<16>)sum[16:16];
    // The two zeros of one's complement: a sum of fields that are not all zero is never the negative one.
    ip.hdr_checksum = checksum == 0xffff ? 16w0 : checksum;
}

#endif
