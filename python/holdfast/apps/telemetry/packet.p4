// Common parts of this application's programs: headers of packets, their parser, checksums and deparser.
//
// INT_TRANSIT_ONLY: a transit node of INT-MD, without watchlist, sink and reports. It leaves the stack in the payload.

#ifndef PACKET_P4
#define PACKET_P4

#include "int.p4"

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
    tcp_t          tcp;
    udp_t          udp;
    int_shim_t     int_shim;
    int_header_t   int_header;
    hop_t          hop;        // the words that this node pushes
#ifndef INT_TRANSIT_ONLY
    int_stack_t    int_stack;
    tcp_t          inner_tcp;  // behind the INT headers (NPT 2)
    udp_t          inner_udp;
    // A report, in front of the packet that it is about.
    ipv4_t         report_ipv4;
    udp_t          report_udp;
    report_t       report;
    hop_t          report_hop;
    word_t         report_drop;
    // The headers that the sink has removed: never sent, but copied to clones with everything else.
    udp_t          kept_udp;
    int_shim_t     kept_shim;
    int_header_t   kept_header;
    int_stack_t    kept_stack;
#endif
}

struct metadata_t {
    bit<6>       dscp;
    bit<8>       drop_reason;
    hop_values_t values;
#ifndef INT_TRANSIT_ONLY
    bit<1>       from_domain;
#ifdef INT_UDP_PORT
    bit<1>       indicated_fragment;  // the first one of a datagram to INT's port
#endif
    bit<16>      src_port;
    bit<16>      dst_port;
    // The data of the watchlist's entry.
    bit<4>       mode;
    bit<2>       npt;
    bit<1>       discard;
    bit<16>      instructions;
    bit<5>       hop_ml;
    bit<8>       hops;
    bit<16>      domain_id;
    bit<17>      sampling;
    bit<1>       report_drops;
    // Of a report, for the clone that it is made of.
    @field_list(1)
    bit<1>       report;
    @field_list(1)
    bit<1>       congested;
    @field_list(1)
    bit<1>       tracked;
    @field_list(1)
    bit<8>       reported_drop;
    @field_list(1)
    bit<16>      report_instructions;
    @field_list(1)
    bit<16>      report_domain_id;
    @field_list(1)
    bit<32>      report_ports;
    @field_list(1)
    bit<32>      report_latency;
    @field_list(1)
    bit<32>      report_queue;
    @field_list(1)
    bit<64>      report_ingress_time;
    @field_list(1)
    bit<64>      report_egress_time;
    @field_list(1)
    bit<64>      report_interfaces;
    @field_list(1)
    bit<32>      report_tx_utilisation;
    // The fields that the sink has changed.
    @field_list(1)
    bit<1>       stripped;
    @field_list(1)
    bit<16>      kept_length;
    @field_list(1)
    bit<8>       kept_traffic_class;
    @field_list(1)
    bit<16>      kept_checksum;
#endif
}

parser TelemetryParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
#ifndef INT_TRANSIT_ONLY
    // Ports with INT nodes behind them. A packet from elsewhere has no INT headers, whatever its bytes are.
    value_set<port_t>(512) domain_ports;
#endif

#ifdef INT_TRANSIT_ONLY
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }
#else
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT:     parse_packet_out;
            domain_ports: parse_from_domain;
            default:      parse_ethernet;
        }
    }

    state parse_from_domain {
        meta.from_domain = 1;
        transition parse_ethernet;
    }
#endif

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default:        accept;
        }
    }

    // INT is behind TCP or UDP that follow the IPv6 header itself: extension headers are passed by.
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        meta.dscp = hdr.ipv6.traffic_class[7:2];
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_udp;
            default:      accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        meta.dscp = hdr.ipv4.diffserv[7:2];
        transition select(hdr.ipv4.ihl) {
            5:       parse_ipv4_payload;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, (bit<32>)(hdr.ipv4.ihl - 5) * 32);
        transition parse_ipv4_payload;
    }

    // Fragments never carry INT: behind the first there is no header, and none may grow.
    state parse_ipv4_payload {
        transition select(hdr.ipv4.flags[0:0], hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, 0, PROTOCOL_TCP): parse_tcp;
            (0, 0, PROTOCOL_UDP): parse_udp;
#ifdef INT_UDP_PORT
#ifndef INT_TRANSIT_ONLY
            (1, 0, PROTOCOL_UDP): parse_first_fragment;
#endif
#endif
            default:              accept;
        }
    }

#ifdef INT_UDP_PORT
#ifndef INT_TRANSIT_ONLY
    // Other devices may look at the ports of a first fragment.
    state parse_first_fragment {
        transition select(packet.lookahead<bit<32>>()[15:0]) {
            INT_UDP_PORT: parse_indicated_fragment;
            default:      accept;
        }
    }

    state parse_indicated_fragment {
        meta.indicated_fragment = 1;
        transition accept;
    }
#endif
#endif

#ifdef INT_UDP_PORT
    state parse_tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            INT_UDP_PORT: parse_int;
            default:      accept;
        }
    }
#else
    state parse_tcp {
        packet.extract(hdr.tcp);
        transition select(meta.dscp) {
            INT_DSCP &&& INT_DSCP_MASK: parse_int;
            default:                    accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(meta.dscp) {
            INT_DSCP &&& INT_DSCP_MASK: parse_int;
            default:                    accept;
        }
    }
#endif

#ifdef INT_TRANSIT_ONLY
    state parse_int {
        packet.extract(hdr.int_shim);
        verify(hdr.int_shim.length_ >= INT_WORDS || hdr.int_shim.type != INT_MD, error.ParserInvalidArgument);
        transition select(hdr.int_shim.type) {
            INT_MD:  parse_int_header;
            default: accept;
        }
    }

    state parse_int_header {
        packet.extract(hdr.int_header);
        transition accept;
    }
#else
    state parse_int {
        transition select(meta.from_domain) {
            1:       parse_int_shim;
            default: accept;
        }
    }

    state parse_int_shim {
        packet.extract(hdr.int_shim);
        transition select(hdr.int_shim.type) {
            INT_MD:  parse_int_header;
            INT_MX:  parse_int_header;
            default: parse_int_words;
        }
    }

    state parse_int_header {
        verify(hdr.int_shim.length_ >= INT_WORDS, error.ParserInvalidArgument);
        packet.extract(hdr.int_header);
        packet.extract(hdr.int_stack, (bit<32>)(hdr.int_shim.length_ - INT_WORDS) << 5);
        transition parse_behind_int;
    }

    // Another type of header.
    state parse_int_words {
        verify(hdr.int_shim.length_ <= 252, error.ParserInvalidArgument);
        packet.extract(hdr.int_stack, (bit<32>)hdr.int_shim.length_ << 5);
        transition parse_behind_int;
    }

    state parse_behind_int {
        transition select(hdr.int_shim.npt, hdr.int_shim.original[7:0]) {
            (NPT_PROTOCOL, PROTOCOL_TCP): parse_inner_tcp;
            (NPT_PROTOCOL, PROTOCOL_UDP): parse_inner_udp;
            default:                      accept;
        }
    }

    state parse_inner_tcp {
        packet.extract(hdr.inner_tcp);
        transition accept;
    }

    state parse_inner_udp {
        packet.extract(hdr.inner_udp);
        transition accept;
    }
#endif
}

control TelemetryVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUMS(verify_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

control TelemetryComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUMS(update_checksum, true, hdr.ipv4, hdr.ipv4_options);
#ifndef INT_TRANSIT_ONLY
        IPV4_CHECKSUM(update_checksum, hdr.report_ipv4.isValid(), hdr.report_ipv4);
#endif
    }
}

control TelemetryDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
#ifndef INT_TRANSIT_ONLY
        packet.emit(hdr.report_ipv4);
        packet.emit(hdr.report_udp);
        packet.emit(hdr.report);
        packet.emit(hdr.report_hop);
        packet.emit(hdr.report_drop);
#endif
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.int_shim);
        packet.emit(hdr.int_header);
        packet.emit(hdr.hop);
#ifndef INT_TRANSIT_ONLY
        packet.emit(hdr.int_stack);
        packet.emit(hdr.inner_tcp);
        packet.emit(hdr.inner_udp);
#endif
    }
}

#endif
