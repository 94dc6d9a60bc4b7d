// P4-Protect: 1+1 path protection for IPv4 (Lindner, Merling, Haeberle, Menth: EuroP4 2020), and a plain router.
//
// A packet of a protected flow gets a sequence number at the tunnel ingress (PTI), a protection header, and an outer IPv4
// header towards the tunnel egress (PTE); a multicast group sends one copy on each of two paths. The PTE accepts the first copy
// of each sequence number and drops the other. Every node runs this program and may be PTI, PTE and router at once.
//
// Blocks in the paper's order: Decaps-IP, Decaps-P, Protect&Forward (section 5.3).

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"

// Protocol number of the outer header. 253 is for experimentation (RFC 3692); the original prototype's 143 now means Ethernet.
#ifndef PROTECTION_PROTOCOL
#define PROTECTION_PROTOCOL 253
#endif

// Width of the sequence number space. The field on the wire has 32 bits whatever this is; smaller spaces are for tests.
#ifndef SN_BITS
#define SN_BITS 32
#endif

// Connections that one node can be the PTI of, and those it can be the PTE of.
#ifndef CONNECTIONS
#define CONNECTIONS 8192
#endif

typedef bit<SN_BITS> sn_t;

// The acceptance window W: half of the number space.
const sn_t WINDOW = (sn_t)1 << (SN_BITS - 1);

// Bytes that protection adds: outer IPv4 header and protection header.
const bit<16> OVERHEAD = 28;

// Paper, section 3.2.
header protection_t {
    bit<24> cid;            // connection identifier, meaningful at the PTE
    bit<32> sn;             // sequence number
    bit<8>  next_protocol;  // as in IPv4
}

header ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
    ipv4_t         tunnel;  // outer header, of packets that arrive or leave encapsulated
    protection_t   protection;
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ports_t        ports;
}

struct metadata_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<1>  protect;          // copies are to leave through their tunnels
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
            default:        accept;
        }
    }

    // Tunnel headers never have options, and only whole datagrams are decapsulated.
    state parse_outermost {
        ipv4_t ip = packet.lookahead<ipv4_t>();
        transition select(ip.ihl, ip.flags & 1, ip.frag_offset, ip.protocol) {
            (5, 0, 0, PROTECTION_PROTOCOL): parse_protected;
            (5, 0, 0, PROTOCOL_IPV4):       parse_ip_in_ip;
            default:                        parse_ipv4;
        }
    }

    state parse_ip_in_ip {
        packet.extract(hdr.tunnel);
        verify(hdr.tunnel.version == 4, error.ParserInvalidArgument);
        transition parse_ipv4;
    }

    state parse_protected {
        packet.extract(hdr.tunnel);
        verify(hdr.tunnel.version == 4, error.ParserInvalidArgument);
        packet.extract(hdr.protection);
        transition select(hdr.protection.next_protocol) {
            PROTOCOL_IPV4: parse_ipv4;
            default:       accept;
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

    state parse_ports {
        packet.extract(hdr.ports);
        meta.src_port = hdr.ports.src_port;
        meta.dst_port = hdr.ports.dst_port;
        transition accept;
    }
}

control ProtectVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.tunnel.isValid(), { IPV4_CHECKSUM_FIELDS(hdr.tunnel) }, hdr.tunnel.hdr_checksum,
                        HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(),
                        { IPV4_CHECKSUM_FIELDS(hdr.ipv4) }, hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4_options.isValid(),
                        { IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4_options.options },
                        hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

// Removes the outer header of packets addressed to this node.
control DecapsIp(inout headers_t hdr) {
    table tunnel_endpoints {
        key = {
            hdr.tunnel.dst_addr: exact;
        }
        actions = {
            NoAction;
        }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    apply {
        if (tunnel_endpoints.apply().hit) {
            hdr.tunnel.setInvalid();
        }
    }
}

// Accepts the first copy of each sequence number.
control DecapsP(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    // The last sequence number accepted, by connection.
    register<sn_t>(CONNECTIONS) last_accepted_sn;
    counter(CONNECTIONS, CounterType.packets_and_bytes) accepted;
    counter(CONNECTIONS, CounterType.packets_and_bytes) discarded;
    counter(1, CounterType.packets) unknown_connection;

    bit<32> connection = 0;

    action select_connection(bit<32> index) {
        connection = index;
    }

    table egress_connections {
        key = {
            hdr.protection.cid: exact;
        }
        actions = {
            select_connection;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    apply {
        if (egress_connections.apply().miss || !hdr.ipv4.isValid()) {
            unknown_connection.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        sn_t last;
        last_accepted_sn.read(last, connection);
        sn_t sn = (sn_t)hdr.protection.sn;
        // Equations 1 to 3 of the paper in one: SN lies 1 to W after the last one, modulo the number space.
        if (sn - last - 1 < WINDOW) {
            last_accepted_sn.write(connection, sn);
            accepted.count(connection);
            hdr.protection.setInvalid();
        } else {
            discarded.count(connection);
            mark_to_drop(standard_metadata);
            exit;
        }
    }
}

// Protects the flows that are to be protected, routes the others.
control ProtectAndForward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The last sequence number sent, by connection.
    register<sn_t>(CONNECTIONS) last_sent_sn;
    counter(CONNECTIONS, CounterType.packets_and_bytes) protected;
    counter(CONNECTIONS, CounterType.packets) mtu_exceeded;
    counter(1, CounterType.packets) ttl_expired;
    direct_counter(CounterType.packets_and_bytes) flow_counter;
    direct_counter(CounterType.packets_and_bytes) route_counter;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // index: the PTI's register of the connection. mtu: largest outer packet, in bytes, that both paths carry.
    // Larger packets are counted and dropped: splitting them would defeat the receiver's elimination, and sending them
    // unprotected would break the promise without anyone noticing.
    action protect(bit<32> index, bit<24> cid, ipv4_address_t src_ip, ipv4_address_t dst_ip, bit<16> m_grp, bit<16> mtu) {
        if (hdr.ipv4.total_len > mtu |-| OVERHEAD) {
            mtu_exceeded.count(index);
            mark_to_drop(standard_metadata);
        } else {
            sn_t sn;
            last_sent_sn.read(sn, index);
            sn = sn + 1;
            last_sent_sn.write(index, sn);
            protected.count(index);

            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            hdr.protection.setValid();
            hdr.protection.cid = cid;
            hdr.protection.sn = (bit<32>)sn;
            hdr.protection.next_protocol = PROTOCOL_IPV4;

            hdr.tunnel.setValid();
            hdr.tunnel.version = 4;
            hdr.tunnel.ihl = 5;
            hdr.tunnel.diffserv = hdr.ipv4.diffserv;
            hdr.tunnel.total_len = hdr.ipv4.total_len + OVERHEAD;
            // Never fragmented (DF), so the identification need not be unique (RFC 6864); the number helps in captures.
            hdr.tunnel.identification = (bit<16>)(bit<32>)sn;
            hdr.tunnel.flags = 2;
            hdr.tunnel.frag_offset = 0;
            hdr.tunnel.ttl = 64;
            hdr.tunnel.protocol = PROTECTION_PROTOCOL;
            hdr.tunnel.src_addr = src_ip;
            hdr.tunnel.dst_addr = dst_ip;

            standard_metadata.mcast_grp = m_grp;
            meta.multicast_group = m_grp;
            meta.protect = 1;
        }
    }

    table protected_flows {
        key = {
            hdr.ipv4.src_addr: ternary;
            hdr.ipv4.dst_addr: ternary;
            hdr.ipv4.protocol: ternary;
            meta.src_port:     ternary;
            meta.dst_port:     ternary;
        }
        actions = {
            protect;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = flow_counter;
        size = 8192;
    }

    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        if (hdr.tunnel.isValid()) {
            hdr.tunnel.ttl = hdr.tunnel.ttl - 1;
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
    }

    // To the controller, as it arrived.
    action punt() {
        standard_metadata.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
    }

    ipv4_address_t dst_addr = 0;

    table ipv4_lpm {
        key = {
            dst_addr: lpm @name("dst_addr");
        }
        actions = {
            forward;
            punt;
            drop;
        }
        default_action = drop();
        counters = route_counter;
        size = 65536;
    }

    apply {
        bit<8> ttl;
        if (hdr.tunnel.isValid()) {
            dst_addr = hdr.tunnel.dst_addr;
            ttl = hdr.tunnel.ttl;
        } else {
            dst_addr = hdr.ipv4.dst_addr;
            ttl = hdr.ipv4.ttl;
        }
        if (ttl <= 1) {
            ttl_expired.count(0);
            drop();
        } else if (hdr.tunnel.isValid()) {
            ipv4_lpm.apply();
        } else if (protected_flows.apply().miss) {
            ipv4_lpm.apply();
        }
    }
}

control ProtectIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) malformed;

    DecapsIp() decaps_ip;
    DecapsP() decaps_p;
    ProtectAndForward() protect_and_forward;

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed.count(0);
            mark_to_drop(standard_metadata);
        } else if (!hdr.ipv4.isValid() && !hdr.tunnel.isValid()) {
            mark_to_drop(standard_metadata);
        } else {
            if (hdr.tunnel.isValid()) {
                decaps_ip.apply(hdr);
            }
            if (hdr.protection.isValid() && !hdr.tunnel.isValid()) {
                decaps_p.apply(hdr, standard_metadata);
            }
            protect_and_forward.apply(hdr, meta, standard_metadata);
        }
    }
}

control ProtectEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // dst_ip: the PTE's address on this path, so that the nodes on the way need no more than destination routing.
    action send_copy(mac_t src_mac, mac_t dst_mac, ipv4_address_t dst_ip) {
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.tunnel.dst_addr = dst_ip;
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
        size = 2 * CONNECTIONS;
    }

    apply {
        if (meta.protect == 1) {
            tunnel_copies.apply();
        }
    }
}

control ProtectComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.tunnel.isValid(), { IPV4_CHECKSUM_FIELDS(hdr.tunnel) }, hdr.tunnel.hdr_checksum,
                        HashAlgorithm.csum16);
        update_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(),
                        { IPV4_CHECKSUM_FIELDS(hdr.ipv4) }, hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
        update_checksum(hdr.ipv4_options.isValid(),
                        { IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4_options.options },
                        hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

control ProtectDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tunnel);
        packet.emit(hdr.protection);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ports);
    }
}

V1Switch(ProtectParser(), ProtectVerifyChecksum(), ProtectIngress(), ProtectEgress(), ProtectComputeChecksum(),
         ProtectDeparser()) main;
