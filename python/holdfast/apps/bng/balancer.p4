// The load balancer in front of the planes of a gateway: an authentication plane and several forwarding planes.
//
// On the lines' side, a frame goes to the authentication plane (discovery and PPP control) or to the forwarding plane of its line, with its
// access port in a tag. On the core's side, a packet goes to the forwarding plane of its subscriber. Lines and subscribers belong to
// buckets, and one entry per bucket names its plane, so that both directions of a bucket move from one plane to another between two packets.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "../domain.p4"
#include "wire.p4"
#include "neighbours.p4"

// A power of two.
#ifndef BUCKETS
#define BUCKETS 4096
#endif

#ifndef ADDRESSES
#define ADDRESSES 524288
#endif

typedef bit<8> reason_t;
const reason_t PASSES        = 0;
const reason_t TRUNCATED     = 1;
const reason_t UNKNOWN_PORT  = 2;
const reason_t ETHERTYPE     = 3;
const reason_t NO_PLANE      = 4;  // a bucket without a plane, or no authentication plane
const reason_t NO_SUBSCRIBER = 5;  // a destination in no bucket
const reason_t NO_UPLINK     = 6;  // a next hop that is at no port
const reason_t CORE_RATE     = 7;  // more ARP and neighbour discovery than the controller takes
#define REASONS 8

const bit<8> ROLE_NONE       = 0;
const bit<8> ROLE_ACCESS     = 1;  // lines
const bit<8> ROLE_PLANE      = 2;  // the lines' side of a plane
const bit<8> ROLE_PLANE_CORE = 3;  // the core's side of a plane
const bit<8> ROLE_CORE       = 4;

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
    tag_t          port_tag;
    arp_t          arp;
    ipv6_t         ipv6;
    solicitation_t solicitation;
}

struct metadata_t {
    bit<12>        s_vid;
    bit<12>        c_vid;
    bit<1>         is_pppoe;
    bit<1>         is_control;  // for the authentication plane
    bit<1>         is_neighbour;
    bit<1>         is_ipv4;
    bit<1>         is_ipv6;
    ipv4_address_t ipv4_dst;
    bit<64>        ipv6_dst;
    bit<16>        bucket;
}

parser BalancerParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
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
            ETHERTYPE_PORT_TAG:  parse_port_tag;
            ETHERTYPE_QINQ:      parse_s_tag;
            ETHERTYPE_VLAN:      parse_s_tag;
            ETHERTYPE_SESSION:   parse_session_0;
            ETHERTYPE_DISCOVERY: is_discovery;
            ETHERTYPE_ARP:       parse_arp;
            ETHERTYPE_IPV4:      parse_ipv4;
            ETHERTYPE_IPV6:      parse_ipv6;
            default:             accept;
        }
    }

    state parse_port_tag {
        packet.extract(hdr.port_tag);
        transition accept;
    }

    state parse_s_tag {
        tag_t tag = packet.lookahead<tag_t>();
        meta.s_vid = tag.vid;
        transition select(tag.ether_type) {
            ETHERTYPE_VLAN:      parse_c_tag;
            ETHERTYPE_SESSION:   parse_session_1;
            ETHERTYPE_DISCOVERY: is_discovery;
            default:             accept;
        }
    }

    state parse_c_tag {
        bit<64> tags = packet.lookahead<bit<64>>();
        meta.c_vid = tags[27:16];
        transition select(tags[15:0]) {
            ETHERTYPE_SESSION:   parse_session_2;
            ETHERTYPE_DISCOVERY: is_discovery;
            default:             accept;
        }
    }

#define SESSION(number, bits) \
    state parse_session_##number { \
        meta.is_pppoe = 1; \
        transition select(packet.lookahead<bit<(bits + 64)>>()[15:0]) { \
            PPP_IPV4: accept; \
            PPP_IPV6: accept; \
            PPP_LCP:  parse_lcp_##number; \
            default:  is_control; \
        } \
    } \
    state parse_lcp_##number { \
        transition select(packet.lookahead<bit<(bits + 72)>>()[7:0]) { \
            LCP_ECHO_REQUEST: accept; \
            default:          is_control; \
        } \
    }

    SESSION(0, 0)
    SESSION(1, 32)
    SESSION(2, 64)

    state is_discovery {
        meta.is_pppoe = 1;
        transition is_control;
    }

    state is_control {
        meta.is_control = 1;
        transition accept;
    }

    state parse_ipv4 {
        meta.is_ipv4 = 1;
        meta.ipv4_dst = packet.lookahead<bit<160>>()[31:0];
        transition accept;
    }

    state parse_ipv6 {
        bit<320> start = packet.lookahead<bit<320>>();
        meta.is_ipv6 = 1;
        meta.ipv6_dst = start[127:64];
        // A packet may end with its header (RFC 8200, section 4.7), also one that says it is ICMPv6.
        transition select(start[271:264], start[287:272]) {
            (PROTOCOL_ICMPV6, 0 &&& 0xfffe): accept;
            (PROTOCOL_ICMPV6, _):            parse_icmpv6;
            default:                         accept;
        }
    }

    // Solicitations and advertisements of neighbours.
    state parse_icmpv6 {
        transition select(packet.lookahead<bit<328>>()[7:0]) {
            135:     parse_solicitation;
            136:     is_neighbour;
            default: accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition is_neighbour;
    }

    state parse_solicitation {
        transition select(packet.lookahead<bit<48>>()[15:0]) {
            SOLICITATION_BYTES: take_solicitation;
            default:            is_neighbour;
        }
    }

    state take_solicitation {
        packet.extract(hdr.ipv6);
        packet.extract(hdr.solicitation);
        transition is_neighbour;
    }

    state is_neighbour {
        meta.is_neighbour = 1;
        transition accept;
    }
}

control BalancerVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control BalancerIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(REASONS, CounterType.packets_and_bytes) drops;
    meter(1, MeterType.packets) core_rate;
    CountRefused() count_refused;
    AnswerNeighbour() answer_neighbour;

    bit<8> role = ROLE_NONE;
    bool has_plane = false;
    bool in_some_bucket = false;
    port_t plane_port = 0;
    port_t plane_core_port = 0;

    action set_role(bit<8> number) {
        role = number;
    }

    table ports {
        key = {
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = {
            set_role;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    action to_plane(port_t port) {
        has_plane = true;
        plane_port = port;
    }

    table authentication {
        key = { }
        actions = {
            to_plane;
            NoAction;
        }
        default_action = NoAction();
    }

    // The plane of a bucket: its ports on both sides.
    action serve(port_t access, port_t core) {
        has_plane = true;
        plane_port = access;
        plane_core_port = core;
    }

    table buckets {
        key = {
            meta.bucket: exact @name("bucket");
        }
        actions = {
            serve;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = BUCKETS;
    }

    action belong(bit<16> bucket) {
        in_some_bucket = true;
        meta.bucket = bucket;
    }

    table destinations_v4 {
        key = {
            meta.ipv4_dst: exact @name("address");
        }
        actions = {
            belong;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = ADDRESSES;
    }

    action belong_v6(bit<16> bucket) {
        in_some_bucket = true;
        meta.bucket = bucket;
    }

    table destinations_v6 {
        key = {
            meta.ipv6_dst: lpm @name("prefix");
        }
        actions = {
            belong_v6;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = ADDRESSES * 2;
    }

    action to_uplink(port_t port) {
        standard_metadata.egress_spec = port;
    }

    // The port of a next hop in the core.
    table uplinks {
        key = {
            hdr.ethernet.dst_addr: exact @name("mac");
        }
        actions = {
            to_uplink;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }

        reason_t reason = PASSES;
        bool in_bucket = false;
        ports.apply();
        if (role == ROLE_NONE) {
            reason = UNKNOWN_PORT;
        } else if (standard_metadata.parser_error != error.NoError) {
            reason = TRUNCATED;
        } else if (role == ROLE_ACCESS) {
            if (meta.is_pppoe == 0) {
                reason = ETHERTYPE;
            } else if (meta.is_control == 1) {
                authentication.apply();
            } else {
                bit<32> sum;
                hash(sum, HashAlgorithm.crc32, 32w0,
                     { 7w0 ++ standard_metadata.ingress_port ++ 4w0 ++ meta.s_vid ++ 4w0 ++ meta.c_vid }, (bit<32>)BUCKETS);
                meta.bucket = sum[15:0];
                in_bucket = true;
            }
        } else if (role == ROLE_PLANE) {
            if (!hdr.port_tag.isValid()) {
                reason = ETHERTYPE;
            } else {
                standard_metadata.egress_spec = hdr.port_tag.vid[8:0];
                hdr.ethernet.ether_type = hdr.port_tag.ether_type;
                hdr.port_tag.setInvalid();
            }
        } else if (hdr.port_tag.isValid()) {
            reason = ETHERTYPE;
        } else if (role == ROLE_PLANE_CORE) {
            if (uplinks.apply().miss) {
                reason = NO_UPLINK;
            }
        } else if (meta.is_neighbour == 1) {
            bool answered;
            answer_neighbour.apply(hdr.ethernet, hdr.arp, hdr.ipv6, hdr.solicitation, standard_metadata, answered);
            if (answered) {
                exit;
            }
            bit<2> colour;
            core_rate.execute_meter(0, colour);
            if (colour == V1MODEL_METER_COLOR_RED) {
                reason = CORE_RATE;
            } else {
                standard_metadata.egress_spec = CPU_PORT;
                hdr.packet_in.setValid();
                hdr.packet_in._pad = 0;
                hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            }
        } else if (meta.is_ipv4 == 0 && meta.is_ipv6 == 0) {
            reason = ETHERTYPE;
        } else {
            if (meta.is_ipv4 == 1) {
                destinations_v4.apply();
            } else {
                destinations_v6.apply();
            }
            if (in_some_bucket) {
                in_bucket = true;
            } else {
                reason = NO_SUBSCRIBER;
            }
        }

        if (in_bucket) {
            buckets.apply();
        }
        if (reason == PASSES && role == ROLE_ACCESS) {
            if (!has_plane) {
                reason = NO_PLANE;
            } else {
                hdr.port_tag.setValid();
                hdr.port_tag.pcp = 0;
                hdr.port_tag.dei = 0;
                hdr.port_tag.vid = (bit<12>)standard_metadata.ingress_port;
                hdr.port_tag.ether_type = hdr.ethernet.ether_type;
                hdr.ethernet.ether_type = ETHERTYPE_PORT_TAG;
                standard_metadata.egress_spec = plane_port;
            }
        } else if (in_bucket) {
            if (!has_plane) {
                reason = NO_PLANE;
            } else {
                standard_metadata.egress_spec = plane_core_port;
            }
        }

        if (reason != PASSES) {
            mark_to_drop(standard_metadata);
            drops.count((bit<32>)reason);
            if (hdr.port_tag.isValid() && role != ROLE_PLANE) {
                // The tag is between the balancer and its planes alone.
                count_refused.apply(standard_metadata.ingress_port);
            }
        }
    }
}

control BalancerEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control BalancerComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control BalancerDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.port_tag);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.solicitation);
    }
}

V1Switch(BalancerParser(), BalancerVerifyChecksum(), BalancerIngress(), BalancerEgress(), BalancerComputeChecksum(),
         BalancerDeparser()) main;
