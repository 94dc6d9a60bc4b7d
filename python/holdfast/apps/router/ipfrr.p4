// The router of router.p4 with IP fast reroute: while the port of a route is down, packets take the route's alternate.
//
// A loop-free alternate (RFC 5286) is another next hop. A remote one (RFC 7490) is another next hop too, and an IP-in-IP tunnel (RFC 2003)
// from there to a PQ node, which decapsulates and forwards as if nothing had happened. The program knows no topology; which alternate
// a route has is the controller's decision, made before anything fails. Repaired packets that are in a tunnel are not repaired again.
//
// ICMP is left alone: an expired TTL, and a packet too long for its tunnel, is counted and dropped, not answered.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "../domain.p4"
#include "../discovery.p4"

#define PORTS 512

// The prefix of routers' loopback addresses. IP-in-IP towards them is a repair tunnel, of this network.
#ifndef LOOPBACKS
#define LOOPBACKS 0x0AFF0000 &&& 0xFFFF0000
#endif

// The outer header.
const bit<16> OVERHEAD = 20;

const bit<8> TUNNEL_TTL = 64;

const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_CE      = 3;

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
    ipv4_t         tunnel;  // outer header, of packets that arrive or leave in a repair tunnel
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
}

// The results of the route lookup.
struct metadata_t {
    bit<1>         to_router; // the outermost destination is one of the routers' own addresses
    ipv4_address_t dst_addr;  // the routed address: the outermost destination
    bit<1>         routed;
    port_t         port;
    mac_t          src_mac;
    mac_t          dst_mac;
    bit<1>         has_alternate;
    port_t         alternate_port;
    mac_t          alternate_src_mac;
    mac_t          alternate_dst_mac;
    bit<1>         remote;
    ipv4_address_t loopback;
    ipv4_address_t pq_node;
    bit<16>        mtu;
    bit<1>         encapsulated;
}

parser IpfrrParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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

    // Tunnel headers never have options, and are never fragmented. All other IP-in-IP is payload of its IPv4 header.
    state parse_outermost {
        ipv4_t ip = packet.lookahead<ipv4_t>();
        transition select(ip.ihl, ip.flags & 1, ip.frag_offset, ip.protocol, ip.dst_addr) {
            (5, 0, 0, PROTOCOL_IPV4, LOOPBACKS): parse_tunnel;
            (_, _, _, _, LOOPBACKS):             parse_to_router;
            default:                             parse_ipv4;
        }
    }

    // In no tunnel.
    state parse_to_router {
        meta.to_router = 1;
        transition parse_ipv4;
    }

    state parse_tunnel {
        meta.to_router = 1;
        packet.extract(hdr.tunnel);
        verify(hdr.tunnel.version == 4, error.ParserInvalidArgument);
        transition parse_ipv4;
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
}

// In a tunnel both headers are checked at every router: a packet that is damaged inside is dropped now rather than at the tunnel's end.
control IpfrrVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUM(verify_checksum, hdr.tunnel.isValid(), hdr.tunnel);
        IPV4_CHECKSUMS(verify_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

control IpfrrIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Whether there is a signal at a port; the switch's agent keeps it.
    @port_state register<bit<1>>(PORTS) port_up;

    counter(1, CounterType.packets) malformed;
    counter(1, CounterType.packets) ttl_expired;
    counter(1, CounterType.packets_and_bytes) lfa_repairs;
    counter(1, CounterType.packets_and_bytes) remote_lfa_repairs;
    counter(1, CounterType.packets_and_bytes) decapsulated;
    counter(1, CounterType.packets) no_alternate;  // the port is down, and there is no alternate whose port is up
    counter(1, CounterType.packets) mtu_exceeded;
    counter(1, CounterType.packets) congestion_unmarkable;
    direct_counter(CounterType.packets_and_bytes) route_counter;

    LeadsToDomain() leads_to_domain;
    CountRefused() count_refused;
    MeterDiscovery() meter_discovery;
    bool stop = false;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // Without an alternate.
    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        meta.routed = 1;
        meta.port = port;
        meta.src_mac = src_mac;
        meta.dst_mac = dst_mac;
    }

    action forward_or_lfa(port_t port, mac_t src_mac, mac_t dst_mac,
                          port_t alternate_port, mac_t alternate_src_mac, mac_t alternate_dst_mac) {
        forward(port, src_mac, dst_mac);
        meta.has_alternate = 1;
        meta.alternate_port = alternate_port;
        meta.alternate_src_mac = alternate_src_mac;
        meta.alternate_dst_mac = alternate_dst_mac;
    }

    // loopback and pq_node are the tunnel's ends; mtu is what the outer packet may have.
    action forward_or_remote_lfa(port_t port, mac_t src_mac, mac_t dst_mac,
                                 port_t alternate_port, mac_t alternate_src_mac, mac_t alternate_dst_mac,
                                 ipv4_address_t loopback, ipv4_address_t pq_node, bit<16> mtu) {
        forward_or_lfa(port, src_mac, dst_mac, alternate_port, alternate_src_mac, alternate_dst_mac);
        meta.remote = 1;
        meta.loopback = loopback;
        meta.pq_node = pq_node;
        meta.mtu = mtu;
    }

    // To the controller, as it arrived.
    action punt() {
        standard_metadata.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in._pad = 0;
    }

    table ipv4_lpm {
        key = {
            meta.dst_addr: lpm @name("dst_addr");
        }
        actions = {
            forward;
            forward_or_lfa;
            forward_or_remote_lfa;
            punt;
            drop;
        }
        default_action = drop();
        counters = route_counter;
        size = 65536;
    }

    // This router's own address.
    table loopbacks {
        key = {
            hdr.tunnel.dst_addr: exact;
        }
        actions = {
            NoAction;
        }
        const default_action = NoAction();
        size = 4;
    }

    // A congestion mark of the outer header is carried over to the inner one (RFC 6040, section 4.2).
    action decapsulate() {
        decapsulated.count(0);
        if (hdr.tunnel.diffserv[1:0] == ECN_CE || hdr.ipv4.diffserv[1:0] == 2 && hdr.tunnel.diffserv[1:0] == 1) {
            hdr.ipv4.diffserv[1:0] = hdr.tunnel.diffserv[1:0];
        }
        hdr.tunnel.setInvalid();
        meta.dst_addr = hdr.ipv4.dst_addr;
    }

    action encapsulate() {
        hdr.tunnel.setValid();
        hdr.tunnel.version = 4;
        hdr.tunnel.ihl = 5;
        hdr.tunnel.diffserv = hdr.ipv4.diffserv;
        hdr.tunnel.total_len = hdr.ipv4.total_len + OVERHEAD;
        hdr.tunnel.identification = 0;  // not fragmented, never will be (RFC 6864, section 4.1)
        hdr.tunnel.flags = 2;           // do not fragment
        hdr.tunnel.frag_offset = 0;
        hdr.tunnel.ttl = TUNNEL_TTL;
        hdr.tunnel.protocol = PROTOCOL_IPV4;
        hdr.tunnel.src_addr = meta.loopback;
        hdr.tunnel.dst_addr = meta.pq_node;
        meta.encapsulated = 1;
    }

    action send(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
    }

    apply {
        bool is_foreign = false;
        bool is_within = false;
        if (meta.to_router == 1) {
            // Repair tunnels, and whatever else goes to routers, come from routers of this network.
            bool leads;
            leads_to_domain.apply(standard_metadata.ingress_port, leads);
            is_foreign = !leads;
        }
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            stop = true;
        } else if (is_foreign) {
            count_refused.apply(standard_metadata.ingress_port);
            drop();
            stop = true;
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed.count(0);
            drop();
            stop = true;
        } else if (!hdr.ipv4.isValid()) {
            if (hdr.ethernet.ether_type == ETHERTYPE_LLDP) {
                meter_discovery.apply(standard_metadata.ingress_port, is_within);
            }
            if (is_within) {
                punt();
            } else {
                drop();
            }
            stop = true;
        }

        // allow(invalid): without IPv4 nothing uses it
        meta.dst_addr = hdr.ipv4.dst_addr;
        if (!stop && hdr.tunnel.isValid()) {
            meta.dst_addr = hdr.tunnel.dst_addr;
            if (loopbacks.apply().hit) {
                if (hdr.tunnel.diffserv[1:0] == ECN_CE && hdr.ipv4.diffserv[1:0] == ECN_NOT_ECT) {
                    congestion_unmarkable.count(0);
                    drop();
                    stop = true;
                } else {
                    decapsulate();
                }
            }
        }

        if (!stop) {
            // The outermost header's.
            bit<8> ttl = hdr.tunnel.isValid() ? hdr.tunnel.ttl : hdr.ipv4.ttl;
            if (ttl <= 1) {
                ttl_expired.count(0);
                drop();
                stop = true;
            } else {
                ipv4_lpm.apply();
            }
            ttl = ttl - 1;
            if (hdr.tunnel.isValid()) {
                hdr.tunnel.ttl = ttl;
            } else {
                hdr.ipv4.ttl = ttl;
            }
        }

        if (!stop && meta.routed == 1) {
            bit<1> up;
            bit<1> alternate_up;
            port_up.read(up, (bit<32>)meta.port);
            port_up.read(alternate_up, (bit<32>)meta.alternate_port);
            if (up == 1) {
                send(meta.port, meta.src_mac, meta.dst_mac);
            } else if (meta.has_alternate == 0 || alternate_up == 0 || hdr.tunnel.isValid()) {
                no_alternate.count(0);
                drop();
            } else if (meta.remote == 0) {
                lfa_repairs.count(0);
                send(meta.alternate_port, meta.alternate_src_mac, meta.alternate_dst_mac);
            } else if (hdr.ipv4.total_len > meta.mtu - OVERHEAD) {
                mtu_exceeded.count(0);
                drop();
            } else {
                remote_lfa_repairs.count(0);
                encapsulate();
                send(meta.alternate_port, meta.alternate_src_mac, meta.alternate_dst_mac);
            }
        }
    }
}

control IpfrrEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

// Of packets that pass in a tunnel the inner header is left as it is.
control IpfrrComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUM(update_checksum, hdr.tunnel.isValid(), hdr.tunnel);
        IPV4_CHECKSUMS(update_checksum, (!hdr.tunnel.isValid() || meta.encapsulated == 1), hdr.ipv4, hdr.ipv4_options);
    }
}

control IpfrrDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tunnel);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
    }
}

V1Switch(IpfrrParser(), IpfrrVerifyChecksum(), IpfrrIngress(), IpfrrEgress(), IpfrrComputeChecksum(),
         IpfrrDeparser()) main;
