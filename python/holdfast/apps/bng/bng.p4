// A broadband network gateway: PPPoE sessions of IPv4 and IPv6 between access ports, towards subscribers' lines, and core ports.
//
// Discovery and PPP control go to the controller, as far as meters let them; sessions end here. Packets that are not allowed are dropped, with a
// reason that is counted.
//
// It is one plane, or one of two kinds behind `balancer.p4`: AUTH_ONLY has discovery and PPP control, FORWARD_ONLY has sessions, with the
// parts of control that need a session: echoes of LCP, router and neighbour discovery, and DHCPv6.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"

#if defined(AUTH_ONLY) && defined(FORWARD_ONLY)
#error "AUTH_ONLY and FORWARD_ONLY exclude each other"
#endif
#if defined(AUTH_ONLY) || defined(FORWARD_ONLY)
#define PORT_TAG
#endif

#include "frames.p4"
#include "reasons.p4"

// Cells of registers and meters, which session identifiers are the indices of; 0 and 65,535 are no session's.
#ifndef SESSION_IDS
#define SESSION_IDS 65536
#endif

#ifndef SESSIONS
#define SESSIONS 65536
#endif

// Lines share cells of the meter of control packets if they have the same hash.
#ifndef LINE_CELLS
#define LINE_CELLS 65536
#endif

// So do access nodes.
#ifndef NODE_CELLS
#define NODE_CELLS 8192
#endif

const bit<8> ROLE_NONE   = 0;
const bit<8> ROLE_ACCESS = 1;
const bit<8> ROLE_CORE   = 2;

// Packets for the controller are limited by class, so that none starves another.
typedef bit<2> class_t;
const class_t CLASS_PADI      = 0;
const class_t CLASS_DISCOVERY = 1;  // PADR and PADT
const class_t CLASS_PPP       = 2;
const class_t CLASS_CORE      = 3;  // ARP and neighbour discovery

// Each line has a committed and a peak rate (RFC 2698). Packets within the committed rates of lines compete only with each other, so
// that lines whose peak rates fill the controller's cannot starve a line that keeps to the first. The lines of an access node (outer
// tag) together have such rates, too: a subscriber that writes inner tags is many lines, and no more than one access node.
control SendToController(inout headers_t hdr, in metadata_t meta, inout standard_metadata_t standard_metadata, in class_t kind,
                         inout reason_t reason) {
    meter(LINE_CELLS * 4, MeterType.packets) line_rate;
    meter(NODE_CELLS * 4, MeterType.packets) node_committed;
    meter(NODE_CELLS * 4, MeterType.packets) node_peak;
    meter(8, MeterType.packets) control_rate;
    counter(4, CounterType.packets) to_controller;

    apply {
        bit<32> cell;
        bit<2> colour;
        hash(cell, HashAlgorithm.crc32, 32w0, { 7w0 ++ meta.port ++ 4w0 ++ meta.s_vid ++ 4w0 ++ meta.c_vid }, (bit<32>)LINE_CELLS);
        line_rate.execute_meter(cell << 2 | (bit<32>)kind, colour);
        if (colour == V1MODEL_METER_COLOR_RED) {
            reason = LINE_RATE;
        } else {
            bit<32> node;
            hash(node, HashAlgorithm.crc32, 32w0, { 7w0 ++ meta.port ++ 4w0 ++ meta.s_vid }, (bit<32>)NODE_CELLS);
            bit<32> share = colour == V1MODEL_METER_COLOR_GREEN ? 32w0 : 32w1;
            if (share == 0) {
                node_committed.execute_meter(node << 2 | (bit<32>)kind, colour);
                share = colour == V1MODEL_METER_COLOR_RED ? 32w1 : 32w0;
            }
            if (share == 1) {
                node_peak.execute_meter(node << 2 | (bit<32>)kind, colour);
            }
            if (share == 1 && colour == V1MODEL_METER_COLOR_RED) {
                reason = NODE_RATE;
            } else {
                control_rate.execute_meter((bit<32>)kind << 1 | share, colour);
                if (colour == V1MODEL_METER_COLOR_RED) {
                    reason = CONTROL_RATE;
                } else {
                    to_controller.count((bit<32>)kind);
                    standard_metadata.egress_spec = CPU_PORT;
                    hdr.packet_in.setValid();
                    hdr.packet_in._pad = 0;
                    hdr.packet_in.ingress_port = standard_metadata.ingress_port;
                }
            }
        }
    }
}

#ifndef AUTH_ONLY
// Lowers the MSS of a segment to `most` (RFC 4459, section 3.2), and its checksum with it (RFC 1624, equation 3).
control ClampMss(inout headers_t hdr, in metadata_t meta, in bit<16> most) {
    counter(1, CounterType.packets) clamped;
    counter(1, CounterType.packets) unparsed;

    apply {
        if (hdr.mss.isValid() && hdr.mss.value > most) {
            bit<16> before = hdr.mss.value;
            bit<16> after = most;
            if (meta.skipped[0:0] == 1) {  // the value lies across two words of the sum
                before = before[7:0] ++ before[15:8];
                after = after[7:0] ++ after[15:8];
            }
            bit<32> sum = (bit<32>)(~hdr.tcp.checksum) + (bit<32>)(~before) + (bit<32>)after;
            sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
            sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
            hdr.tcp.checksum = ~sum[15:0];
            hdr.mss.value = most;
            clamped.count(0);
        } else if (meta.unparsed == 1) {
            unparsed.count(0);
        }
    }
}

// One hop less (RFC 1624 for the checksum).
control CountHop(inout headers_t hdr) {
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            bit<32> sum = (bit<32>)hdr.ipv4.hdr_checksum + 0x0100;
            hdr.ipv4.hdr_checksum = sum >= 0xffff ? sum[15:0] + 1 : sum[15:0];
        } else {
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
        }
    }
}
#endif

control BngIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(REASONS, CounterType.packets_and_bytes) drops;
    SendToController() send_to_controller;

    bit<8> role = ROLE_NONE;
    mac_t our_mac = 0;

    // Drops the packet. Packets that stay are allowed so far.
    action deny(in reason_t reason) {
        mark_to_drop(standard_metadata);
        drops.count((bit<32>)reason);
        exit;
    }

    action access(mac_t mac) {
        role = ROLE_ACCESS;
        our_mac = mac;
    }

    action core(mac_t mac) {
        role = ROLE_CORE;
        our_mac = mac;
    }

    // The role of a port, and our MAC address there.
    table ports {
        key = {
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = {
            access;
            core;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

#ifndef AUTH_ONLY
    ClampMss() clamp_mss;
    AnswerNeighbour() answer_neighbour;
    CountHop() count_hop;
    counter(1, CounterType.packets) echoes;
    // By session: packets in the upper 64 bits, bytes of IP in the lower ones.
    register<bit<128>>(SESSION_IDS) usage_up;
    register<bit<128>>(SESSION_IDS) usage_down;
    meter(SESSION_IDS, MeterType.bytes) rate_up;
    meter(SESSION_IDS, MeterType.bytes) rate_down;

    bit<16> session_id = 0;
    port_t out_port = 0;
    mac_t next_src = 0;
    mac_t next_dst = 0;
    bit<16> mtu = 0;
    bit<16> most_mss = 0xffff;
    port_t line_port = 0;
    bit<12> line_s_vid = 0;
    bit<12> line_c_vid = 0;
    mac_t subscriber_mac = 0;
    bit<32> our_magic = 0;
    ipv4_address_t ipv4_source = 0;
    bit<64> interface_id = 0;
    bit<64> prefix = 0;
    bit<64> delegated = 0;
    bit<64> delegated_mask = 0;
    bit<16> s_tpid = 0;

    // The line and the addresses that a session may send from. Absent addresses and prefixes are 0.
    action subscriber(port_t port, bit<12> s_vid, bit<12> c_vid, mac_t mac, bit<32> magic, bit<16> mss, ipv4_address_t ipv4,
                      bit<64> interface, bit<64> network, bit<64> delegation, bit<64> delegation_mask) {
        line_port = port;
        line_s_vid = s_vid;
        line_c_vid = c_vid;
        subscriber_mac = mac;
        our_magic = magic;
        most_mss = mss;
        ipv4_source = ipv4;
        interface_id = interface;
        prefix = network;
        delegated = delegation;
        delegated_mask = delegation_mask;
    }

    table sessions {
        key = {
            hdr.pppoe.session_id: exact @name("session_id");
        }
        actions = {
            subscriber;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = SESSIONS;
    }

    action to_core(port_t port, mac_t src_mac, mac_t dst_mac, bit<16> largest) {
        out_port = port;
        next_src = src_mac;
        next_dst = dst_mac;
        mtu = largest;
    }

    table ipv4_lpm {
        key = {
            hdr.ipv4.dst_addr: lpm;
        }
        actions = {
            to_core;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 65536;
    }

    action to_core_v6(port_t port, mac_t src_mac, mac_t dst_mac, bit<16> largest) {
        out_port = port;
        next_src = src_mac;
        next_dst = dst_mac;
        mtu = largest;
    }

    table ipv6_lpm {
        key = {
            hdr.ipv6.dst_addr: lpm;
        }
        actions = {
            to_core_v6;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 65536;
    }

    // The location of a session: the output port, and the line, whose port is another one behind a balancer. `tpid`: of the outer tag.
    action deliver(bit<16> session, port_t port, port_t line, bit<16> tpid, bit<12> s_vid, bit<12> c_vid, mac_t src_mac, mac_t dst_mac,
                   bit<16> mru, bit<16> mss) {
        session_id = session;
        out_port = port;
        line_port = line;
        s_tpid = tpid;
        line_s_vid = s_vid;
        line_c_vid = c_vid;
        next_src = src_mac;
        next_dst = dst_mac;
        mtu = mru;
        most_mss = mss;
    }

    table subscribers_v4 {
        key = {
            hdr.ipv4.dst_addr: exact @name("address");
        }
        actions = {
            deliver;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = SESSIONS;
    }

    action deliver_v6(bit<16> session, port_t port, port_t line, bit<16> tpid, bit<12> s_vid, bit<12> c_vid, mac_t src_mac, mac_t dst_mac,
                      bit<16> mru, bit<16> mss) {
        session_id = session;
        out_port = port;
        line_port = line;
        s_tpid = tpid;
        line_s_vid = s_vid;
        line_c_vid = c_vid;
        next_src = src_mac;
        next_dst = dst_mac;
        mtu = mru;
        most_mss = mss;
    }

    // Prefixes of router advertisements and of DHCPv6.
    table subscribers_v6 {
        key = {
            hdr.ipv6.dst_addr[127:64]: lpm @name("prefix");
        }
        actions = {
            deliver_v6;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = SESSIONS * 2;
    }
#endif

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }

        ports.apply();
        if (role == ROLE_NONE) {
            deny(UNKNOWN_PORT);
        }
        if (standard_metadata.parser_error == error.PacketTooShort) {
            deny(TRUNCATED);
        }
        if (standard_metadata.parser_error != error.NoError) {
            deny(MALFORMED);
        }
        if (standard_metadata.checksum_error == 1) {
            deny(BAD_CHECKSUM);
        }

        bool punts = false;
        class_t kind = role == ROLE_ACCESS ? CLASS_PPP : CLASS_CORE;
        bit<32> received = standard_metadata.packet_length;
#ifndef AUTH_ONLY
        bool is_ipv4 = hdr.ipv4.isValid();
        bool is_ipv6 = hdr.ipv6.isValid();
        bit<32> ip_bytes = 0;
        bit<8> hops = 0;
        if (is_ipv4) {
            ip_bytes = (bit<32>)hdr.ipv4.total_len;
            hops = hdr.ipv4.ttl;
            if (ip_bytes < (bit<32>)hdr.ipv4.ihl << 2) {
                deny(MALFORMED);
            }
        } else if (is_ipv6) {
            ip_bytes = (bit<32>)hdr.ipv6.payload_len + 40;
            hops = hdr.ipv6.hop_limit;
        }
#endif

        if (role == ROLE_ACCESS) {
            bit<32> carried = 0;
            if (hdr.pppoe.isValid()) {
                carried = (bit<32>)hdr.pppoe.length;
            }
            bool is_session = hdr.ppp.isValid();
#ifdef PORT_TAG
            if (!hdr.port_tag.isValid()) {
                deny(BAD_TAGS);
            }
#endif
            if (meta.s_vid == 4095 || meta.c_vid == 4095 || meta.s_vid == 0 && hdr.c_tag.isValid()) {
                deny(BAD_TAGS);
            }
            if (!hdr.pppoe.isValid()) {
                deny(ETHERTYPE);
            }
            if (hdr.ethernet.dst_addr != our_mac && (is_session || hdr.pppoe.code != PADI || hdr.ethernet.dst_addr != 0xffffffffffff)) {
                deny(OTHER_GATEWAY);
            }
            if (received < carried + (bit<32>)meta.tag_bytes + 20) {
                deny(TRUNCATED);
            }
            if (hdr.pppoe.version != 1 || hdr.pppoe.type != 1 || hdr.ethernet.src_addr[40:40] == 1 || hdr.ethernet.src_addr == 0) {
                deny(MALFORMED);
            }
            punts = true;
            if (!is_session) {
                kind = hdr.pppoe.code == PADI ? CLASS_PADI : CLASS_DISCOVERY;
                if (hdr.pppoe.code == PADT ? hdr.pppoe.session_id == 0 :
                    hdr.pppoe.session_id != 0 || hdr.pppoe.code != PADI && hdr.pppoe.code != PADR) {
                    deny(MALFORMED);
                }
#ifdef FORWARD_ONLY
                deny(WRONG_PLANE);
#endif
            } else if (hdr.pppoe.code != 0 || carried < 2) {
                deny(MALFORMED);
            }
#ifdef AUTH_ONLY
            if (is_session && (hdr.ppp.protocol == PPP_IPV4 || hdr.ppp.protocol == PPP_IPV6)) {
                deny(WRONG_PLANE);
            }
#endif
#ifdef FORWARD_ONLY
            if (!is_ipv4 && !is_ipv6 && !hdr.lcp_magic.isValid()) {
                deny(WRONG_PLANE);
            }
#endif

#ifndef AUTH_ONLY
            // A session's own line and MAC address, where the session is known; one that is being set up is the controller's.
            if (is_session || hdr.pppoe.code == PADT) {
                if (!sessions.apply().hit) {
                    if (is_ipv4 || is_ipv6) {
                        deny(UNKNOWN_SESSION);
                    }
                } else {
                    if (meta.port != line_port || meta.s_vid != line_s_vid || meta.c_vid != line_c_vid) {
                        deny(WRONG_LINE);
                    }
                    if (hdr.ethernet.src_addr != subscriber_mac) {
                        deny(WRONG_MAC);
                    }
                    if ((is_ipv4 || is_ipv6) && ip_bytes + 2 > carried) {
                        deny(TRUNCATED);
                    }
                    if (is_ipv4) {
                        punts = false;
                        bit<8> to = hdr.ipv4.dst_addr[31:24];
                        if (ipv4_source == 0) {
                            deny(NOT_NEGOTIATED);
                        }
                        if (hdr.ipv4.src_addr != ipv4_source) {
                            deny(SPOOFED_ADDRESS);
                        }
                        if (to == 0 || to == 127 || to >= 224) {
                            deny(BOGUS_ADDRESS);
                        }
                        if (hops <= 1) {
                            deny(TTL_EXPIRED);
                        }
                        if (!ipv4_lpm.apply().hit) {
                            deny(NO_ROUTE);
                        }
                    } else if (is_ipv6) {
                        bit<64> from = hdr.ipv6.src_addr[127:64];
                        bit<64> to = hdr.ipv6.dst_addr[127:64];
                        bool is_own = from != 0 && (from == prefix || from & delegated_mask == delegated);
                        if (interface_id == 0 && prefix == 0 && delegated == 0) {
                            deny(NOT_NEGOTIATED);
                        }
                        punts = meta.link_control == 1;
                        // From the link-local address of IPv6CP, or before there is an address (RFC 4861, section 4.1).
                        if (!is_own && !(punts && (hdr.ipv6.src_addr == 0 ||
                                                   from == 0xfe80000000000000 && hdr.ipv6.src_addr[63:0] == interface_id))) {
                            deny(SPOOFED_ADDRESS);
                        }
                        if (!punts) {
                            if (to[63:56] == 0xff || to[63:54] == 10w0x3fa || to == 0) {
                                deny(BOGUS_ADDRESS);
                            }
                            if (hops <= 1) {
                                deny(TTL_EXPIRED);
                            }
                            if (!ipv6_lpm.apply().hit) {
                                deny(NO_ROUTE);
                            }
                        }
                    } else if (hdr.lcp_magic.isValid()) {
                        // RFC 1661, section 5.8. Our own number in a request means that the line is a loop, which is for the controller.
                        if (hdr.lcp.length < 8 || (bit<32>)hdr.lcp.length + 2 > carried) {
                            deny(MALFORMED);
                        }
                        if (our_magic == 0 || hdr.lcp_magic.number != our_magic) {
                            echoes.count(0);
                            hdr.lcp.code = LCP_ECHO_REPLY;
                            hdr.lcp_magic.number = our_magic;
                            hdr.ethernet.dst_addr = hdr.ethernet.src_addr;
                            hdr.ethernet.src_addr = our_mac;
                            standard_metadata.egress_spec = standard_metadata.ingress_port;
                            exit;
                        }
                    }
                    if (!punts) {
                        if (ip_bytes > (bit<32>)mtu) {
                            deny(TOO_BIG);
                        }
                        bit<2> colour;
                        rate_up.execute_meter((bit<32>)hdr.pppoe.session_id, colour);
                        if (colour == V1MODEL_METER_COLOR_RED) {
                            deny(RATE_UP);
                        }
                        bit<128> used;
                        usage_up.read(used, (bit<32>)hdr.pppoe.session_id);
                        usage_up.write((bit<32>)hdr.pppoe.session_id, used + (64w1 ++ 32w0 ++ ip_bytes));
                    }
                }
            }
#endif
        } else {
#ifdef AUTH_ONLY
            deny(WRONG_PLANE);
#else
            if (hdr.pppoe.isValid() || hdr.s_tag.isValid()) {
                deny(ETHERTYPE);
            }
            bool answered;
            answer_neighbour.apply(hdr.ethernet, hdr.arp, hdr.ipv6, hdr.solicitation, standard_metadata, answered);
            if (answered) {
                exit;
            }
            punts = hdr.ethernet.ether_type == ETHERTYPE_ARP || meta.link_control == 1;
            if (!punts) {
                if (!is_ipv4 && !is_ipv6) {
                    deny(ETHERTYPE);
                }
                if (hdr.ethernet.dst_addr != our_mac) {
                    deny(OTHER_GATEWAY);
                }
                if (received < ip_bytes + 14) {
                    deny(TRUNCATED);
                }
                // Sources that no host sends from through a router: RFC 1812, section 5.3.7; RFC 4291, sections 2.5.6 and 2.7.
                if (is_ipv4) {
                    bit<8> from = hdr.ipv4.src_addr[31:24];
                    if (from == 0 || from == 127 || from >= 224) {
                        deny(BOGUS_ADDRESS);
                    }
                } else {
                    bit<64> from = hdr.ipv6.src_addr[127:64];
                    if (from[63:56] == 0xff || from[63:54] == 10w0x3fa || from == 0) {
                        deny(BOGUS_ADDRESS);
                    }
                }
                if (is_ipv4) {
                    if (!subscribers_v4.apply().hit) {
                        deny(NO_SUBSCRIBER);
                    }
                } else {
                    if (!subscribers_v6.apply().hit) {
                        deny(NO_SUBSCRIBER);
                    }
                }
                if (hops <= 1) {
                    deny(TTL_EXPIRED);
                }
                if (ip_bytes > (bit<32>)mtu) {
                    deny(TOO_BIG);
                }
                bit<2> colour;
                rate_down.execute_meter((bit<32>)session_id, colour);
                if (colour == V1MODEL_METER_COLOR_RED) {
                    deny(RATE_DOWN);
                }
                bit<128> used;
                usage_down.read(used, (bit<32>)session_id);
                usage_down.write((bit<32>)session_id, used + (64w1 ++ 32w0 ++ ip_bytes));
            }
#endif
        }

        if (punts) {
            reason_t reason = PASSES;
            send_to_controller.apply(hdr, meta, standard_metadata, kind, reason);
            if (reason != PASSES) {
                deny(reason);
            }
            exit;
        }
#ifndef AUTH_ONLY
        standard_metadata.egress_spec = out_port;
        hdr.ethernet.src_addr = next_src;
        hdr.ethernet.dst_addr = next_dst;
        count_hop.apply(hdr);
        clamp_mss.apply(hdr, meta, is_ipv4 ? most_mss : most_mss - 20);
        if (hdr.pppoe.isValid()) {
            hdr.ethernet.ether_type = is_ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;
#ifdef PORT_TAG
            hdr.port_tag.setInvalid();
#endif
            hdr.s_tag.setInvalid();
            hdr.c_tag.setInvalid();
            hdr.pppoe.setInvalid();
            hdr.ppp.setInvalid();
            truncate(ip_bytes + 14);
            exit;
        }
        hdr.pppoe.setValid();
        hdr.pppoe.version = 1;
        hdr.pppoe.type = 1;
        hdr.pppoe.code = 0;
        hdr.pppoe.session_id = session_id;
        hdr.pppoe.length = (bit<16>)ip_bytes + 2;
        hdr.ppp.setValid();
        hdr.ppp.protocol = is_ipv4 ? PPP_IPV4 : PPP_IPV6;
        // Bytes behind the packet, which are padding (RFC 1661, section 2) or a trailer, are in no count and end here, as above.
        bit<32> leaving = ip_bytes + 22;
        // The tags of the line: none, the outer one, or both.
        bit<16> line_type = line_s_vid == 0 ? ETHERTYPE_SESSION : s_tpid;
#ifdef PORT_TAG
        hdr.port_tag.setValid();
        hdr.port_tag.pcp = 0;
        hdr.port_tag.dei = 0;
        hdr.port_tag.vid = (bit<12>)line_port;
        hdr.port_tag.ether_type = line_type;
        line_type = ETHERTYPE_PORT_TAG;
        leaving = leaving + 4;
#endif
        hdr.ethernet.ether_type = line_type;
        if (line_s_vid == 0) {
            truncate(leaving);
            exit;
        }
        hdr.s_tag.setValid();
        hdr.s_tag.pcp = 0;
        hdr.s_tag.dei = 0;
        hdr.s_tag.vid = line_s_vid;
        hdr.s_tag.ether_type = ETHERTYPE_SESSION;
        if (line_c_vid == 0) {
            truncate(leaving + 4);
            exit;
        }
        truncate(leaving + 8);
        hdr.s_tag.ether_type = ETHERTYPE_VLAN;
        hdr.c_tag.setValid();
        hdr.c_tag.pcp = 0;
        hdr.c_tag.dei = 0;
        hdr.c_tag.vid = line_c_vid;
        hdr.c_tag.ether_type = ETHERTYPE_SESSION;
#endif
    }
}

control BngEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

V1Switch(BngParser(), BngVerifyChecksum(), BngIngress(), BngEgress(), BngComputeChecksum(), BngDeparser()) main;
