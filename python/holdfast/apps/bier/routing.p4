// Unicast routes with IP fast reroute: while the port of a route is down, packets take the route's alternate (as in ../router/ipfrr.p4). It does not
// know what is routed: a packet of a host, or a tunnel that starts here.

#ifndef HOLDFAST_BIER_ROUTING_P4
#define HOLDFAST_BIER_ROUTING_P4

// Routes on meta.dst_addr. `bytes`: of the packet as it would leave without a repair tunnel. `in_repair`: it is in one already, and is not
// repaired again.
control Routing(inout metadata_t meta, in bit<32> bytes, in bool in_repair, out bool sends, out bool punts) {
    // Whether there is a signal at a port; the switch's agent keeps it.
    @port_state register<bit<1>>(PORTS) port_up;

    counter(1, CounterType.packets_and_bytes) lfa_repairs;
    counter(1, CounterType.packets_and_bytes) remote_lfa_repairs;
    counter(1, CounterType.packets) no_alternate;  // the port is down, and there is no alternate whose port is up
    counter(1, CounterType.packets) mtu_exceeded;
    direct_counter(CounterType.packets_and_bytes) route_counter;

    bit<1> has_alternate = 0;
    bit<1> remote = 0;
    port_t alternate_port = 0;
    mac_t alternate_src_mac = 0;
    mac_t alternate_dst_mac = 0;
    bit<16> mtu = 0;

    action drop() { }

    // To the controller, as it arrived.
    action punt() {
        punts = true;
    }

    // Without an alternate.
    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        meta.routed = 1;
        meta.port = port;
        meta.src_mac = src_mac;
        meta.dst_mac = dst_mac;
    }

    action forward_or_lfa(port_t port, mac_t src_mac, mac_t dst_mac,
                          port_t other_port, mac_t other_src_mac, mac_t other_dst_mac) {
        forward(port, src_mac, dst_mac);
        has_alternate = 1;
        alternate_port = other_port;
        alternate_src_mac = other_src_mac;
        alternate_dst_mac = other_dst_mac;
    }

    // loopback and pq_node are the tunnel's ends; tunnel_mtu is what the outer packet may have.
    action forward_or_remote_lfa(port_t port, mac_t src_mac, mac_t dst_mac,
                                 port_t other_port, mac_t other_src_mac, mac_t other_dst_mac,
                                 ipv4_address_t loopback, ipv4_address_t pq_node, bit<16> tunnel_mtu) {
        forward_or_lfa(port, src_mac, dst_mac, other_port, other_src_mac, other_dst_mac);
        remote = 1;
        meta.repair_src = loopback;
        meta.repair_dst = pq_node;
        mtu = tunnel_mtu;
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

    apply {
        punts = false;
        sends = false;
        ipv4_lpm.apply();
        if (meta.routed == 1) {
            bit<1> up;
            bit<1> alternate_up;
            port_up.read(up, (bit<32>)meta.port);
            port_up.read(alternate_up, (bit<32>)alternate_port);
            sends = up == 1;
            if (!sends) {
                if (has_alternate == 0 || alternate_up == 0 || in_repair) {
                    no_alternate.count(0);
                } else if (remote == 1 && bytes + IPV4_BYTES > (bit<32>)mtu) {
                    mtu_exceeded.count(0);
                } else {
                    sends = true;
                    meta.port = alternate_port;
                    meta.src_mac = alternate_src_mac;
                    meta.dst_mac = alternate_dst_mac;
                    if (remote == 1) {
                        meta.repaired = 1;
                        remote_lfa_repairs.count(0);
                    } else {
                        lfa_repairs.count(0);
                    }
                }
            }
        }
    }
}

#endif
