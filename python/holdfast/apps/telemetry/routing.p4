// Longest-prefix match, TTL and MAC rewrite (RFC 1812, section 5.2 and 5.3; RFC 8200). It does not know about telemetry.

// Numbers of reasons, of p4lang/switch's list, to which the report specification refers.
const bit<8> DROP_NONE        = 0;
const bit<8> DROP_TTL_EXPIRED = 26;
const bit<8> DROP_NO_ROUTE    = 29;

control Routing(inout headers_t hdr, inout standard_metadata_t standard_metadata, out bit<8> drop_reason) {
    counter(1, CounterType.packets) ttl_expired;
    direct_counter(CounterType.packets_and_bytes) route_counter;
    direct_counter(CounterType.packets_and_bytes) route_counter_v6;

    action drop() {
        drop_reason = DROP_NO_ROUTE;
        mark_to_drop(standard_metadata);
    }

    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table ipv4_lpm {
        key = {
            hdr.ipv4.dst_addr: lpm;
        }
        actions = {
            forward;
            drop;
        }
        default_action = drop();
        counters = route_counter;
        size = 65536;
    }

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
            drop;
        }
        default_action = drop();
        counters = route_counter_v6;
        size = 65536;
    }

    apply {
        drop_reason = DROP_NONE;
        bit<8> ttl = hdr.ipv4.isValid() ? hdr.ipv4.ttl : hdr.ipv6.hop_limit;
        if (ttl <= 1) {
            ttl_expired.count(0);
            drop_reason = DROP_TTL_EXPIRED;
            mark_to_drop(standard_metadata);
        } else if (hdr.ipv4.isValid()) {
            ipv4_lpm.apply();
        } else {
            ipv6_lpm.apply();
        }
    }
}
