// A fixed-function data centre switch in the manner of SAI: admission to routing, VRF by a pre-ingress ACL, IPv4 and IPv6 routes to
// next hops, neighbours and router interfaces, an ingress ACL with counters that may drop, count and mark for a mirror session.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

typedef bit<10> vrf_t;
typedef bit<12> nexthop_t;
typedef bit<12> neighbor_t;
typedef bit<10> rif_t;

// RFC 8200, section 3.
header ipv6_t {
    bit<4>   version;
    bit<6>   dscp;
    bit<2>   ecn;
    bit<20>  flow_label;
    bit<16>  payload_len;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> src_addr;
    bit<128> dst_addr;
}

header ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
    ports_t    ports;
}

struct metadata_t {
    bool       admitted;
    vrf_t      vrf;
    nexthop_t  nexthop;
    neighbor_t neighbor;
    rif_t      rif;
    bool       routed;
    bit<8>     protocol;
    bit<8>     ttl;
    bit<6>     dscp;
    bit<16>    src_port;
    bit<16>    dst_port;
    bit<8>     mirror_session;
    mac_t      src_addr;
    mac_t      dst_addr;
}

parser MiddleblockParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default:        accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5, error.ParserInvalidArgument);
        meta.protocol = hdr.ipv4.protocol;
        meta.ttl = hdr.ipv4.ttl;
        meta.dscp = hdr.ipv4.dscp;
        transition select(hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_TCP): parse_ports;
            (0, PROTOCOL_UDP): parse_ports;
            default:           accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        meta.protocol = hdr.ipv6.next_header;
        meta.ttl = hdr.ipv6.hop_limit;
        meta.dscp = hdr.ipv6.dscp;
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: parse_ports;
            PROTOCOL_UDP: parse_ports;
            default:      accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        meta.src_port = hdr.ports.src_port;
        meta.dst_port = hdr.ports.dst_port;
        transition accept;
    }
}

control MiddleblockVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

// VRF of the packet.
control PreIngress(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) acl_counter;

    action set_vrf(vrf_t vrf) {
        meta.vrf = vrf;
    }

    table acl_pre_ingress {
        key = {
            std.ingress_port:      ternary;
            hdr.ethernet.src_addr: ternary;
            meta.dscp:             ternary;
        }
        actions = {
            set_vrf;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = acl_counter;
        size = 128;
    }

    apply {
        acl_pre_ingress.apply();
    }
}

// Whether the packet is ours to route.
control Admission(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action admit() {
        meta.admitted = true;
    }

    table l3_admit {
        key = {
            hdr.ethernet.dst_addr: ternary;
            std.ingress_port:      optional;
        }
        actions = {
            admit;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 128;
    }

    apply {
        l3_admit.apply();
    }
}

control Routing(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }

    action set_nexthop_id(nexthop_t nexthop) {
        meta.nexthop = nexthop;
        meta.routed = true;
    }

    table ipv4_routes {
        key = {
            meta.vrf:          exact;
            hdr.ipv4.dst_addr: lpm;
        }
        actions = {
            set_nexthop_id;
            drop;
        }
        const default_action = drop();
        size = 16384;
    }

    table ipv6_routes {
        key = {
            meta.vrf:          exact;
            hdr.ipv6.dst_addr: lpm;
        }
        actions = {
            set_nexthop_id;
            drop;
        }
        const default_action = drop();
        size = 16384;
    }

    action set_nexthop(rif_t rif, neighbor_t neighbor) {
        meta.rif = rif;
        meta.neighbor = neighbor;
    }

    table nexthops {
        key = {
            meta.nexthop: exact;
        }
        actions = {
            set_nexthop;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 4096;
    }

    action set_dst_addr(mac_t dst_addr) {
        meta.dst_addr = dst_addr;
    }

    table neighbors {
        key = {
            meta.rif:      exact;
            meta.neighbor: exact;
        }
        actions = {
            set_dst_addr;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 4096;
    }

    action set_port_and_src_addr(port_t port, mac_t src_addr) {
        std.egress_spec = port;
        meta.src_addr = src_addr;
    }

    table router_interfaces {
        key = {
            meta.rif: exact;
        }
        actions = {
            set_port_and_src_addr;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            ipv4_routes.apply();
        } else {
            ipv6_routes.apply();
        }
        if (meta.routed) {
            nexthops.apply();
            neighbors.apply();
            router_interfaces.apply();
        }
    }
}

control IngressAcl(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) acl_counter;
    counter(256, CounterType.packets_and_bytes) mirrored;

    action forward() {
    }

    action drop() {
        mark_to_drop(std);
    }

    action mirror(bit<8> session) {
        meta.mirror_session = session;
    }

    table acl_ingress {
        key = {
            hdr.ipv4.isValid():        optional;
            hdr.ipv4.src_addr:         ternary;
            hdr.ipv4.dst_addr:         ternary;
            hdr.ipv6.dst_addr[127:64]: ternary @name("dst_ipv6");
            meta.protocol:             ternary;
            meta.dscp:                 ternary;
            meta.src_port:             ternary;
            meta.dst_port:             ternary;
        }
        actions = {
            forward;
            drop;
            mirror;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = acl_counter;
        size = 1024;
    }

    apply {
        acl_ingress.apply();
        if (meta.mirror_session != 0) {
            mirrored.count((bit<32>)meta.mirror_session);
        }
    }
}

control MiddleblockIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    PreIngress() pre_ingress;
    Admission() admission;
    Routing() routing;
    IngressAcl() acl;

    apply {
        if (std.parser_error != error.NoError || std.checksum_error == 1 || (!hdr.ipv4.isValid() && !hdr.ipv6.isValid())) {
            mark_to_drop(std);
            return;
        }
        pre_ingress.apply(hdr, meta, std);
        admission.apply(hdr, meta, std);
        if (meta.admitted && meta.ttl > 1) {
            routing.apply(hdr, meta, std);
        } else {
            mark_to_drop(std);
        }
        acl.apply(hdr, meta, std);
    }
}

control MiddleblockEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (meta.routed) {
            hdr.ethernet.src_addr = meta.src_addr;
            hdr.ethernet.dst_addr = meta.dst_addr;
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            } else {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
            }
        }
    }
}

control MiddleblockComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

control MiddleblockDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.ports);
    }
}

V1Switch(MiddleblockParser(), MiddleblockVerifyChecksum(), MiddleblockIngress(), MiddleblockEgress(),
         MiddleblockComputeChecksum(), MiddleblockDeparser()) main;
