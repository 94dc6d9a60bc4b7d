// P4-Protect: 1+1 path protection for IP (Lindner, Merling, Haeberle, Menth: EuroP4 2020), and a plain router.
//
// A packet of a protected flow gets a sequence number at the tunnel ingress (PTI), a protection header, and an outer IPv4
// header towards the tunnel egress (PTE); a multicast group sends one copy on each of two to four paths. The PTE passes one copy of
// each sequence number. Every node runs this program and may be PTI, PTE and router at once; protected packets may be IPv4 or
// IPv6, and the packets of another connection.
//
// Blocks in the paper's order: Decaps-IP, Decaps-P, Protect&Forward (section 5.3).

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "../domain.p4"
#include "../discovery.p4"
#include "acceptance.p4"

// Protocol number of the outer header. 253 is for experimentation (RFC 3692); the original prototype's 143 now means Ethernet.
#ifndef PROTECTION_PROTOCOL
#define PROTECTION_PROTOCOL 253
#endif

// Of a protection header right behind Ethernet: on its way to a port that puts packets in order, not between nodes. Local experimental
// EtherType 1 (IEEE 802).
const bit<16> ETHERTYPE_PROTECTION = 0x88b5;

// With UDP_PORT=n, tunnels are UDP to that port, which then belongs to them in the whole network: for NATs and firewalls that pass
// nothing else, and for nodes that spread flows over links (the source port is the flow's).

// Bytes that protection adds: outer IPv4 header and protection header, and UDP.
#ifdef UDP_PORT
const bit<16> OVERHEAD = 36;
const bit<8>  TUNNEL_PROTOCOL = PROTOCOL_UDP;
#else
const bit<16> OVERHEAD = 28;
const bit<8>  TUNNEL_PROTOCOL = PROTECTION_PROTOCOL;
#endif

// Whether these are the protocol and the destination port of a tunnel.
#ifdef UDP_PORT
#define IS_TUNNEL(protocol, dst_port) (protocol == TUNNEL_PROTOCOL && dst_port == UDP_PORT)
#else
#define IS_TUNNEL(protocol, dst_port) (protocol == TUNNEL_PROTOCOL)
#endif

const bit<16> IPV6_HEADER_BYTES = 40;

// With NESTED_ENDS, a connection within another may end at the same node as that one: the contents of a tunnel are parsed anew. Without, it
// ends further on. (A program that recirculates anything is slower for all packets.)
#ifdef NESTED_ENDS
// No metadata goes round with the packet.
const bit<8> NOTHING = 0;

// Of instance_type.
const bit<32> RECIRCULATED = 4;
#endif

// Paper, section 3.2.
header protection_t {
    bit<24> cid;            // connection identifier, meaningful at the PTE
    bit<32> sn;             // sequence number
    bit<8>  next_protocol;  // as in IPv4
}

#ifdef UDP_PORT
header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}
#endif

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
    ipv4_t         new_tunnel;  // of the connection that the packet enters here
#ifdef UDP_PORT
    udp_t          new_udp;
#endif
    protection_t   new_protection;
    ipv4_t         tunnel;      // of packets that arrive encapsulated
#ifdef UDP_PORT
    udp_t          udp;         // of the tunnel
#endif
    protection_t   protection;
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
}

struct metadata_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<1>  protect;  // copies are to leave through their tunnels
#ifdef NESTED_ENDS
    bit<1>  again;    // what was in the tunnel may be in another that ends here
#endif
    bit<16> multicast_group;
}

parser ProtectParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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
            ETHERTYPE_IPV4: parse_outermost;
            ETHERTYPE_IPV6: parse_ipv6;
            default:        accept;
        }
    }

    // Tunnel headers never have options, and only whole datagrams are decapsulated. Other IP in IP is payload of its IPv4 header: a tunnel
    // without numbers would bring packets past the domain's edge.
    state parse_outermost {
        ipv4_t ip = packet.lookahead<ipv4_t>();
        transition select(ip.ihl, ip.flags & 1, ip.frag_offset, ip.protocol) {
            (5, 0, 0, TUNNEL_PROTOCOL): parse_protected;
            default:                    parse_ipv4;
        }
    }

#ifdef UDP_PORT
    state parse_protected {
        transition select(packet.lookahead<bit<192>>()[15:0]) {
            UDP_PORT: parse_udp;
            default:  parse_ipv4;
        }
    }

    state parse_udp {
        packet.extract(hdr.tunnel);
        verify(hdr.tunnel.version == 4, error.ParserInvalidArgument);
        packet.extract(hdr.udp);
        transition parse_protection;
    }
#else
    state parse_protected {
        packet.extract(hdr.tunnel);
        verify(hdr.tunnel.version == 4, error.ParserInvalidArgument);
        transition parse_protection;
    }
#endif

    state parse_protection {
        packet.extract(hdr.protection);
        transition select(hdr.protection.next_protocol) {
            PROTOCOL_IPV4: parse_ipv4;
            PROTOCOL_IPV6: parse_ipv6;
            default:       accept;
        }
    }

    // Ports behind extension headers are not looked for.
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: parse_ports;
            PROTOCOL_UDP: parse_ports;
            default:      accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl) {
            5:       parse_transport;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, (bit<32>)(hdr.ipv4.ihl - 5) * 32);
        transition parse_transport;
    }

    // Only the first fragment has ports.
    state parse_transport {
        transition select(hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_TCP): parse_ports;
            (0, PROTOCOL_UDP): parse_ports;
            default:           accept;
        }
    }

    // Looked at, not taken out: a header less to be put back.
    state parse_ports {
        bit<32> ports = packet.lookahead<bit<32>>();
        meta.src_port = ports[31:16];
        meta.dst_port = ports[15:0];
        transition accept;
    }
}

control ProtectVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUM(verify_checksum, hdr.tunnel.isValid(), hdr.tunnel);
        IPV4_CHECKSUMS(verify_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

// Removes the outer header of a tunnel's packets that are addressed to this node.
control DecapsIp(inout headers_t hdr, out path_t path) {
    // path: which of a connection's paths ends at this address. With NoAction, the first.
    action end_path(path_t number) {
        path = number;
    }

    table tunnel_endpoints {
        key = {
            hdr.tunnel.dst_addr: exact;
        }
        actions = {
            NoAction;
            end_path;
        }
        const default_action = NoAction();
        size = PATHS * CONNECTIONS;
    }

    apply {
        path = 0;
        if (tunnel_endpoints.apply().hit) {
            hdr.tunnel.setInvalid();
#ifdef UDP_PORT
            hdr.udp.setInvalid();
#endif
        }
    }
}

// Passes one copy of each sequence number.
control DecapsP(inout headers_t hdr, in path_t path, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) unknown_connection;

    Acceptance() acceptance;
    acceptance_t by = { 0, ALGORITHM_PAPER_WINDOW, 0, 0, 0 };

    // The paper's window, without a reset.
    action select_connection(bit<32> index) {
        by.connection = index;
    }

    // history_length: 2 to HISTORY_BITS. reset_timeout_us: 0 for never.
    action select_window(bit<32> index, bit<32> reset_timeout_us) {
        by.connection = index;
        by.algorithm = ALGORITHM_WINDOW;
        by.reset_timeout_us = reset_timeout_us;
    }

    action select_vector(bit<32> index, bit<8> history_length, bit<32> reset_timeout_us) {
        by.connection = index;
        by.algorithm = ALGORITHM_VECTOR;
        by.history_length = history_length > HISTORY_BITS ? (bit<8>)HISTORY_BITS : history_length;
        by.reset_timeout_us = reset_timeout_us;
    }

    action select_match(bit<32> index, bit<32> reset_timeout_us) {
        by.connection = index;
        by.algorithm = ALGORITHM_MATCH;
        by.reset_timeout_us = reset_timeout_us;
    }

    table egress_connections {
        key = {
            hdr.protection.cid: exact;
        }
        actions = {
            select_connection;
            select_window;
            select_vector;
            select_match;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    apply {
        bool has_inner = hdr.ipv4.isValid() || hdr.ipv6.isValid();
        if (egress_connections.apply().miss || !has_inner) {
            unknown_connection.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        bool passes;
        by.path = path;
        acceptance.apply(by, (sn_t)hdr.protection.sn, standard_metadata.ingress_global_timestamp, passes);
        if (!passes) {
            mark_to_drop(standard_metadata);
            exit;
        }
        // The number is what the port behind needs that puts packets in order: where the packet goes decides whether it stays.
        if (hdr.ipv6.isValid()) {
            hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        }
    }
}

// The connection that a packet enters.
struct tunnel_t {
    bit<32>        index;  // the PTI's registers
    bit<24>        cid;
    ipv4_address_t src_addr;
    ipv4_address_t dst_addr;
    bit<16>        multicast_group;
    bit<16>        mtu;    // largest outer packet, in bytes, that all paths carry
}

// The outermost header of a packet: it decides route and protection.
struct outermost_t {
    ipv4_address_t src_addr;  // of IPv4
    ipv4_address_t dst_addr;
    bit<8>         protocol;
    bit<8>         diffserv;
    bit<8>         ttl;
    bit<16>        length;
    bit<16>        src_port;  // zero of tunnels that are not UDP
    bit<16>        dst_port;
}

// Numbers a packet and puts it into a tunnel. Packets too large for it are counted and dropped: splitting them would defeat the
// receiver's elimination, and sending them unprotected would break the promise without anyone noticing.
control Encapsulate(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                    in tunnel_t to, in outermost_t outermost, in bit<8> next_protocol) {
    // The last sequence number sent, by connection.
    register<sn_t>(CONNECTIONS) last_sent_sn;
    counter(CONNECTIONS, CounterType.packets_and_bytes) protected;
    counter(CONNECTIONS, CounterType.packets) mtu_exceeded;

    apply {
        if (outermost.length > to.mtu |-| OVERHEAD) {
            mtu_exceeded.count(to.index);
            mark_to_drop(standard_metadata);
        } else {
            sn_t sn;
            last_sent_sn.read(sn, to.index);
            sn = sn + 1;
            last_sent_sn.write(to.index, sn);
            protected.count(to.index);

            hdr.new_protection.setValid();
            hdr.new_protection.cid = to.cid;
            hdr.new_protection.sn = (bit<32>)sn;
            hdr.new_protection.next_protocol = next_protocol;

            hdr.new_tunnel.setValid();
            hdr.new_tunnel.version = 4;
            hdr.new_tunnel.ihl = 5;
            hdr.new_tunnel.diffserv = outermost.diffserv;
            hdr.new_tunnel.total_len = outermost.length + OVERHEAD;
            // Never fragmented (DF), so the identification need not be unique (RFC 6864); the number helps in captures.
            hdr.new_tunnel.identification = (bit<16>)(bit<32>)sn;
            hdr.new_tunnel.flags = 2;
            hdr.new_tunnel.frag_offset = 0;
            hdr.new_tunnel.ttl = 64;
            hdr.new_tunnel.protocol = TUNNEL_PROTOCOL;
            hdr.new_tunnel.src_addr = to.src_addr;
            hdr.new_tunnel.dst_addr = to.dst_addr;
            hdr.ethernet.ether_type = ETHERTYPE_IPV4;
#ifdef UDP_PORT
            hdr.new_udp.setValid();
            hash(hdr.new_udp.src_port, HashAlgorithm.crc16, (bit<16>)49152,
                 { outermost.src_addr, outermost.dst_addr, outermost.protocol, outermost.src_port, outermost.dst_port },
                 (bit<32>)16384);
            hdr.new_udp.dst_port = UDP_PORT;
            hdr.new_udp.length = outermost.length + OVERHEAD - 20;
            // None: the packet inside has its own (RFC 768).
            hdr.new_udp.checksum = 0;
#endif

            standard_metadata.mcast_grp = to.multicast_group;
            meta.multicast_group = to.multicast_group;
            meta.protect = 1;
        }
    }
}

// Protects the flows that are to be protected, routes the others.
control ProtectAndForward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                          out bool refuses) {
    counter(1, CounterType.packets) ttl_expired;
    direct_counter(CounterType.packets_and_bytes) flow_counter;
    direct_counter(CounterType.packets_and_bytes) route_counter;

    Encapsulate() encapsulate;
    tunnel_t to = { 0, 0, 0, 0, 0, 0 };
    bool keeps_number = false;
    bool to_tunnel_end = false;
    outermost_t outermost = { 0, 0, 0, 0, 0, 0, 0, 0 };

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action protect(bit<32> index, bit<24> cid, ipv4_address_t src_ip, ipv4_address_t dst_ip, bit<16> m_grp, bit<16> mtu) {
        to.index = index;
        to.cid = cid;
        to.src_addr = src_ip;
        to.dst_addr = dst_ip;
        to.multicast_group = m_grp;
        to.mtu = mtu;
    }

    // By the outermost header: with the protection's protocol, packets of other connections.
    table protected_flows {
        key = {
            outermost.src_addr: ternary @name("hdr.ipv4.src_addr");
            outermost.dst_addr: ternary @name("hdr.ipv4.dst_addr");
            outermost.protocol: ternary @name("hdr.ipv4.protocol");
            outermost.src_port: ternary @name("meta.src_port");
            outermost.dst_port: ternary @name("meta.dst_port");
        }
        actions = {
            protect;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = flow_counter;
        size = 8192;
    }

    action decrement_ttl() {
        if (hdr.tunnel.isValid()) {
            hdr.tunnel.ttl = hdr.tunnel.ttl - 1;
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
    }

    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        decrement_ttl();
    }

    // Like forward, towards the end of a tunnel, whose address is nobody's else.
    action forward_tunnel(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        decrement_ttl();
        to_tunnel_end = true;
    }

    // Like forward, towards a host that needs order. The number of a packet that was accepted here stays in front of it, right behind
    // Ethernet, for the port to put packets in order and take it off; a program cannot hold a packet until another one comes.
    action forward_in_order(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        decrement_ttl();
        keeps_number = true;
    }

    // To the controller, as it arrived, but for its tunnel.
    action punt() {
        standard_metadata.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in._pad = 0;
    }

    table ipv4_lpm {
        key = {
            outermost.dst_addr: lpm @name("dst_addr");
        }
        actions = {
            forward;
            forward_tunnel;
            forward_in_order;
            punt;
            drop;
        }
        default_action = drop();
        counters = route_counter;
        size = 65536;
    }

    direct_counter(CounterType.packets_and_bytes) flow_counter_v6;
    direct_counter(CounterType.packets_and_bytes) route_counter_v6;

    table protected_flows_v6 {
        key = {
            hdr.ipv6.src_addr:    ternary;
            hdr.ipv6.dst_addr:    ternary;
            hdr.ipv6.next_header: ternary;
            meta.src_port:        ternary;
            meta.dst_port:        ternary;
        }
        actions = {
            protect;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = flow_counter_v6;
        size = 8192;
    }

    action forward_v6(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
    }

    action forward_v6_in_order(port_t port, mac_t src_mac, mac_t dst_mac) {
        forward_v6(port, src_mac, dst_mac);
        keeps_number = true;
    }

    table ipv6_lpm {
        key = {
            hdr.ipv6.dst_addr: lpm;
        }
        actions = {
            forward_v6;
            forward_v6_in_order;
            punt;
            drop;
        }
        default_action = drop();
        counters = route_counter_v6;
        size = 65536;
    }

    apply {
        refuses = false;
        if (hdr.tunnel.isValid()) {
            outermost.src_addr = hdr.tunnel.src_addr;
            outermost.dst_addr = hdr.tunnel.dst_addr;
            outermost.protocol = hdr.tunnel.protocol;
            outermost.diffserv = hdr.tunnel.diffserv;
            outermost.ttl = hdr.tunnel.ttl;
            outermost.length = hdr.tunnel.total_len;
#ifdef UDP_PORT
            // allow(invalid): a tunnel without UDP is one of protocol 4 or 41, whose ports nothing uses
            outermost.src_port = hdr.udp.src_port;
            outermost.dst_port = hdr.udp.dst_port;
#endif
        } else {
            // allow(invalid): of IPv6 the values follow below, and without IP nothing uses them
            outermost.src_addr = hdr.ipv4.src_addr;
            outermost.dst_addr = hdr.ipv4.dst_addr;
            outermost.protocol = hdr.ipv4.protocol;
            outermost.diffserv = hdr.ipv4.diffserv;
            outermost.ttl = hdr.ipv4.ttl;
            outermost.length = hdr.ipv4.total_len;
            outermost.src_port = meta.src_port;
            outermost.dst_port = meta.dst_port;
        }
        bool encapsulates = false;
        bit<8> next_protocol = PROTOCOL_IPV4;
        bool is_ipv6 = hdr.ipv6.isValid() && !hdr.tunnel.isValid();
        if (is_ipv6) {
            next_protocol = PROTOCOL_IPV6;
            outermost.diffserv = hdr.ipv6.traffic_class;
            outermost.ttl = hdr.ipv6.hop_limit;
            outermost.length = hdr.ipv6.payload_len |+| IPV6_HEADER_BYTES;
#ifdef UDP_PORT
            outermost.src_addr = hdr.ipv6.src_addr[31:0];
            outermost.dst_addr = hdr.ipv6.dst_addr[31:0];
            outermost.protocol = hdr.ipv6.next_header;
            outermost.src_port = meta.src_port;
            outermost.dst_port = meta.dst_port;
#endif
        }
        if (outermost.ttl <= 1) {
            ttl_expired.count(0);
            mark_to_drop(standard_metadata);
        } else if (is_ipv6) {
            if (protected_flows_v6.apply().hit) {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                encapsulates = true;
            } else {
                ipv6_lpm.apply();
            }
        } else if (protected_flows.apply().hit) {
            decrement_ttl();
            encapsulates = true;
        } else {
            ipv4_lpm.apply();
            refuses = to_tunnel_end && !IS_TUNNEL(outermost.protocol, outermost.dst_port);
        }
        if (hdr.protection.isValid() && !hdr.tunnel.isValid()) {
            if (keeps_number) {
                hdr.ethernet.ether_type = ETHERTYPE_PROTECTION;
            } else {
                hdr.protection.setInvalid();
            }
        }
        if (encapsulates) {
            encapsulate.apply(hdr, meta, standard_metadata, to, outermost, next_protocol);
        }
    }
}

control ProtectIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) malformed;

    LeadsToDomain() leads_to_domain;
    CountRefused() count_refused;
    MeterDiscovery() meter_discovery;
    DecapsIp() decaps_ip;
    DecapsP() decaps_p;
    ProtectAndForward() protect_and_forward;

    apply {
        bool is_other = !hdr.tunnel.isValid() && !hdr.ipv4.isValid() && !hdr.ipv6.isValid();
        // The encapsulation that the domain owns, readable or not.
        bool is_owned = hdr.tunnel.isValid() || hdr.ipv4.isValid() && IS_TUNNEL(hdr.ipv4.protocol, meta.dst_port);
        bool refuses = false;
        bool is_within = false;
#ifdef NESTED_ENDS
        // What goes round was in a tunnel.
        is_owned = is_owned && standard_metadata.instance_type != RECIRCULATED;
#endif
        if (is_owned && !hdr.packet_out.isValid()) {
            bool leads;
            leads_to_domain.apply(standard_metadata.ingress_port, leads);
            if (!leads) {
                count_refused.apply(standard_metadata.ingress_port);
                mark_to_drop(standard_metadata);
                exit;
            }
        }
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed.count(0);
            mark_to_drop(standard_metadata);
        } else if (is_other) {
            if (hdr.ethernet.ether_type == ETHERTYPE_LLDP) {
                meter_discovery.apply(standard_metadata.ingress_port, is_within);
            }
            if (is_within) {
                standard_metadata.egress_spec = CPU_PORT;
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = standard_metadata.ingress_port;
                hdr.packet_in._pad = 0;
            } else {
                // The number in front of a packet is on its way out alone.
                refuses = hdr.ethernet.ether_type == ETHERTYPE_PROTECTION;
                mark_to_drop(standard_metadata);
            }
        } else {
            path_t path = 0;
            bool leaves_tunnel = false;
            if (hdr.tunnel.isValid()) {
                decaps_ip.apply(hdr, path);
                leaves_tunnel = !hdr.tunnel.isValid();
            }
            if (leaves_tunnel && hdr.protection.isValid()) {
                decaps_p.apply(hdr, path, standard_metadata);
            }
#ifdef NESTED_ENDS
            if (leaves_tunnel && hdr.ipv4.protocol == TUNNEL_PROTOCOL) {
                // The output port does not matter: the packet goes round.
                hdr.protection.setInvalid();
                standard_metadata.egress_spec = standard_metadata.ingress_port;
                meta.again = 1;
                exit;
            }
#endif
            protect_and_forward.apply(hdr, meta, standard_metadata, refuses);
        }
        if (refuses) {
            count_refused.apply(standard_metadata.ingress_port);
            mark_to_drop(standard_metadata);
        }
    }
}

control ProtectEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // dst_ip: the PTE's address on this path, so that the nodes on the way need no more than destination routing.
    action send_copy(mac_t src_mac, mac_t dst_mac, ipv4_address_t dst_ip) {
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.new_tunnel.dst_addr = dst_ip;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table tunnel_copies {
        key = {
            meta.multicast_group:         exact;
            standard_metadata.egress_rid: exact;
        }
        actions = {
            send_copy;
            @defaultonly drop;
        }
        const default_action = drop();
        size = PATHS * CONNECTIONS;
    }

    apply {
        if (meta.protect == 1) {
            tunnel_copies.apply();
        }
#ifdef NESTED_ENDS
        if (meta.again == 1) {
            recirculate_preserving_field_list(NOTHING);
        }
#endif
    }
}

control ProtectComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUM(update_checksum, hdr.new_tunnel.isValid(), hdr.new_tunnel);
        IPV4_CHECKSUM(update_checksum, hdr.tunnel.isValid(), hdr.tunnel);
        IPV4_CHECKSUMS(update_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

control ProtectDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.new_tunnel);
#ifdef UDP_PORT
        packet.emit(hdr.new_udp);
#endif
        packet.emit(hdr.new_protection);
        packet.emit(hdr.tunnel);
#ifdef UDP_PORT
        packet.emit(hdr.udp);
#endif
        packet.emit(hdr.protection);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(ProtectParser(), ProtectVerifyChecksum(), ProtectIngress(), ProtectEgress(), ProtectComputeChecksum(),
         ProtectDeparser()) main;
