// Multicast forwarding by (S,G) and (*,G) entries (RFC 7761, section 4.2). router.p4 includes this file and calls the two controls.
//
// An entry names the port towards the root of its tree and a multicast group of the switch, which has the ports away from it. A packet
// that comes in by another port is dropped (reverse path check), so that trees that change, or are wrong, make neither loops nor
// duplicates. Which trees there are, and who is a member, is the controller's business.

#ifndef HOLDFAST_IPMC_GROUPS_P4
#define HOLDFAST_IPMC_GROUPS_P4

// As the port towards the root: every port will do. The controller gives it where senders themselves are attached.
const port_t ANY_PORT = 511;

#define IS_MULTICAST_V4(address) (address[31:28] == 0xe)
#define IS_MULTICAST_V6(address) (address[127:120] == 0xff)

control Groups(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) source_counter;
    direct_counter(CounterType.packets_and_bytes) group_counter;
    direct_counter(CounterType.packets_and_bytes) source_counter_v6;
    direct_counter(CounterType.packets_and_bytes) group_counter_v6;
    // Never forwarded, whatever the tables say: groups of one link or one interface, and senders without an address of their own.
    counter(1, CounterType.packets) not_routable;
    counter(1, CounterType.packets) wrong_port;
    counter(1, CounterType.packets) no_group;

    bool   known = false;
    port_t from_port = ANY_PORT;

    action replicate(bit<16> m_grp, port_t rpf_port) {
        known = true;
        standard_metadata.mcast_grp = m_grp;
        from_port = rpf_port;
    }

    // (S,G)
    table ipv4_sources {
        key = {
            hdr.ipv4.src_addr: exact;
            hdr.ipv4.dst_addr: exact;
        }
        actions = {
            replicate;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = source_counter;
        size = 65536;
    }

    // (*,G)
    table ipv4_groups {
        key = {
            hdr.ipv4.dst_addr: exact;
        }
        actions = {
            replicate;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = group_counter;
        size = 65536;
    }

    table ipv6_sources {
        key = {
            hdr.ipv6.src_addr: exact;
            hdr.ipv6.dst_addr: exact;
        }
        actions = {
            replicate;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = source_counter_v6;
        size = 65536;
    }

    table ipv6_groups {
        key = {
            hdr.ipv6.dst_addr: exact;
        }
        actions = {
            replicate;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = group_counter_v6;
        size = 65536;
    }

    apply {
        bool routable;
        if (hdr.ipv4.isValid()) {
            // 224.0.0.0/24 (RFC 5771, section 4); sources as RFC 1812, 5.3.7.
            routable = hdr.ipv4.dst_addr[31:8] != 0xe00000 && !IS_MULTICAST_V4(hdr.ipv4.src_addr)
                && hdr.ipv4.src_addr != 0;
            if (routable) {
                ipv4_sources.apply();
                if (!known) {
                    ipv4_groups.apply();
                }
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            }
        } else {
            // Scopes 0 to 2 (RFC 4291, section 2.7), and sources of one link (2.5.6) or none.
            routable = hdr.ipv6.dst_addr[115:112] > 2 && !IS_MULTICAST_V6(hdr.ipv6.src_addr)
                && hdr.ipv6.src_addr[127:118] != 0x3fa && hdr.ipv6.src_addr != 0;
            if (routable) {
                ipv6_sources.apply();
                if (!known) {
                    ipv6_groups.apply();
                }
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
            }
        }
        if (!routable) {
            not_routable.count(0);
            mark_to_drop(standard_metadata);
        } else if (!known) {
            no_group.count(0);
            mark_to_drop(standard_metadata);
        } else if (from_port != ANY_PORT && from_port != standard_metadata.ingress_port) {
            wrong_port.count(0);
            mark_to_drop(standard_metadata);
        }
    }
}

// A copy leaves with the address of its port, and never by the port that the packet came in by. The destination
// address, which is the group's (RFC 1112, 6.4; RFC 2464, section 7), stays.
control Replicas(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    action send(mac_t src_mac) {
        hdr.ethernet.src_addr = src_mac;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table interfaces {
        key = {
            standard_metadata.egress_port: exact;
        }
        actions = {
            send;
            drop;
        }
        default_action = drop();
        size = 512;
    }

    apply {
        if (standard_metadata.egress_rid != 0) {
            if (standard_metadata.egress_port == standard_metadata.ingress_port) {
                drop();
            } else {
                interfaces.apply();
            }
        }
    }
}

#endif
