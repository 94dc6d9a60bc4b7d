// An IPv4 and IPv6 router: longest-prefix match, TTL, header checksum, MAC rewrite (RFC 1812, section 5.2 and 5.3; RFC 8200).
//
// A packet whose TTL has expired is counted and dropped. With ROUTER_ICMP it can go to a controller that answers it with ICMP (table
// `errors`), and with ROUTER_MTU also packets that are too long for the link behind their port (RFC 1191, RFC 8201). Without, no packet
// pays for it.
// With ROUTER_MULTICAST it is ../ipmc's router, too.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "../discovery.p4"

#ifdef ROUTER_MTU
#define ROUTER_ICMP
#endif

// A packet of the controller for this port is routed as one that arrived; no port has the number.
const port_t ROUTED = 511;

#ifdef ROUTER_ICMP
#define IS_FOR_A_PORT(out) out.egress_port != ROUTED
#define EXPIRED is_error = true
#else
#define IS_FOR_A_PORT(out) true
#define EXPIRED drop()
#endif

#define ERROR_PORTS 512
#define ETHERNET_BYTES 14

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
}

struct metadata_t {
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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
            default:        accept;
        }
    }

    // Extension headers are no business of routers.
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
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
}

control RouterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUMS(verify_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

#ifdef ROUTER_MULTICAST
#include "../ipmc/groups.p4"
#endif

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) malformed;
    counter(1, CounterType.packets) ttl_expired;
    direct_counter(CounterType.packets_and_bytes) route_counter;
    direct_counter(CounterType.packets_and_bytes) route_counter_v6;
    MeterDiscovery() meter_discovery;
#ifdef ROUTER_ICMP
    // Of packets that the controller answers with an error, by port (RFC 1812, section 4.3.2.8). A meter without rates lets all pass.
    meter(ERROR_PORTS, MeterType.packets) error_rate;
    bool is_error = false;
#endif

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
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
            hdr.ipv4.dst_addr: lpm;
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

#ifdef ROUTER_ICMP
    // What becomes of a packet that cannot be forwarded, and about which its sender may be told.
    table errors {
        actions = {
            punt;
            drop;
        }
        default_action = drop();
    }
#endif

#ifdef ROUTER_MTU
    counter(1, CounterType.packets) mtu_exceeded;
    bit<32> longest = 0xFFFFFFFF;

    action limit(bit<32> mtu) {
        longest = mtu;
    }

    table port_mtu {
        key = {
            standard_metadata.egress_spec: exact;
        }
        actions = {
            limit;
            NoAction;
        }
        default_action = NoAction();
        size = 512;
    }
#endif

    action forward_v6(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
    }

    table ipv6_lpm {
        key = {
            hdr.ipv6.dst_addr: lpm;
        }
        actions = {
            forward_v6;
            punt;
            drop;
        }
        default_action = drop();
        counters = route_counter_v6;
        size = 65536;
    }

#ifdef ROUTER_MULTICAST
    Groups() groups;
    bool is_multicast = false;
#endif

    apply {
        if (hdr.packet_out.isValid() && IS_FOR_A_PORT(hdr.packet_out)) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed.count(0);
            drop();
        } else if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ttl <= 1) {
                ttl_expired.count(0);
                EXPIRED;
#ifdef ROUTER_MULTICAST
            } else if (IS_MULTICAST_V4(hdr.ipv4.dst_addr)) {
                is_multicast = true;
#endif
            } else {
                ipv4_lpm.apply();
            }
        } else if (hdr.ipv6.isValid()) {
            if (hdr.ipv6.hop_limit <= 1) {
                ttl_expired.count(0);
                EXPIRED;
#ifdef ROUTER_MULTICAST
            } else if (IS_MULTICAST_V6(hdr.ipv6.dst_addr)) {
                is_multicast = true;
#endif
            } else {
                ipv6_lpm.apply();
            }
        } else if (hdr.ethernet.ether_type == ETHERTYPE_LLDP) {
            bool is_within;
            meter_discovery.apply(standard_metadata.ingress_port, is_within);
            if (is_within) {
                punt();
            } else {
                drop();
            }
        } else {
            drop();
        }
#ifdef ROUTER_MTU
        port_mtu.apply();
        if (!is_error && standard_metadata.packet_length > longest + ETHERNET_BYTES && longest != 0xFFFFFFFF) {
            mtu_exceeded.count(0);
            // As it arrived.
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.ttl = hdr.ipv4.ttl + 1;
            } else if (hdr.ipv6.isValid()) {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit + 1;
            }
            // Without DF it would have to be cut, which nothing here does.
            if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 0) {
                drop();
            } else {
                is_error = true;
            }
        }
#endif
#ifdef ROUTER_ICMP
        if (is_error) {
            bit<2> colour;
            error_rate.execute_meter((bit<32>)standard_metadata.ingress_port, colour);
            if (colour == V1MODEL_METER_COLOR_RED) {
                drop();
            } else {
                errors.apply();
            }
        }
#endif
#ifdef ROUTER_MULTICAST
        // Applied in one place: some targets have one successor for each table.
        if (is_multicast) {
            groups.apply(hdr, standard_metadata);
        }
#endif
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
#ifdef ROUTER_MULTICAST
    Replicas() replicas;
#endif

    apply {
#ifdef ROUTER_MULTICAST
        replicas.apply(hdr, standard_metadata);
#endif
    }
}

control RouterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUMS(update_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(RouterParser(), RouterVerifyChecksum(), RouterIngress(), RouterEgress(), RouterComputeChecksum(),
         RouterDeparser()) main;
