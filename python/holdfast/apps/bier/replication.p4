// BIER forwarding (RFC 8279, section 6.5): which copies a pass of ingress sends, and what it leaves to do. Included by bier.p4, which gets the copies
// on their way; here are only BitStrings, tables and the state of ports.

#ifndef HOLDFAST_BIER_REPLICATION_P4
#define HOLDFAST_BIER_REPLICATION_P4

// Ways to replicate (-D REPLICATION=...): one next hop in each pass (the paper's), all neighbours by one multicast group, or groups of
// neighbours that occur together.
#define RECIRCULATE 0
#define ONE_PASS    1
#define CLUSTERS    2

#ifndef REPLICATION
#define REPLICATION ONE_PASS
#endif

// The replication of BitStrings without a cluster: ONE_PASS or RECIRCULATE.
#ifndef CLUSTER_MISSES
#define CLUSTER_MISSES ONE_PASS
#endif

#if REPLICATION == RECIRCULATE
#define RECIRCULATES
#elif REPLICATION == CLUSTERS
#if CLUSTER_MISSES == RECIRCULATE
#define RECIRCULATES
#elif CLUSTER_MISSES != ONE_PASS
#error "CLUSTER_MISSES must be ONE_PASS or RECIRCULATE"
#endif
#elif REPLICATION != ONE_PASS
#error "REPLICATION must be RECIRCULATE, ONE_PASS or CLUSTERS"
#endif

// One of this many BitStrings is told to the controller, which learns clusters from them. A power of two.
#ifndef CLUSTER_SAMPLING
#define CLUSTER_SAMPLING 64
#endif

struct bit_string_sample_t {
    bit<16>      group;
    bit_string_t bit_string;
}

// The copy for the neighbour of the lowest bit (RFC 8279, section 6.5, steps 2 to 8), or for one of its backups while its port is down.
// `was_repaired`: the packet comes out of a tunnel, and is not repaired again.
control OneNextHop(inout metadata_t meta, in bit_string_t bits, in bool was_repaired, in bit<32> bier_bytes,
                   out bit_string_t mask, out bit<3> mode) {
    // Whether there is a signal at a port; the switch's agent keeps it.
    @port_state register<bit<1>>(PORTS) port_up;

    counter(1, CounterType.packets_and_bytes) lfa_repairs;
    counter(1, CounterType.packets_and_bytes) tunnel_repairs;
    counter(1, CounterType.packets) no_backup;  // the port is down, and no backup can be used
    counter(1, CounterType.packets) tunnel_mtu_exceeded;

    bit_string_t lowest;
    bit<16> neighbour = 0;
    bit<16> mtu = 0;

    // The neighbour's number in its group is that of its replica, in `copies`.
    action next_hop(bit<16> instance, bit_string_t f_bm, port_t port, mac_t src_mac, mac_t dst_mac) {
        neighbour = instance;
        mask = f_bm;
        meta.port = port;
        meta.src_mac = src_mac;
        meta.dst_mac = dst_mac;
    }

    // A neighbour's pattern is zero outside its F-BM: of all lowest bits those in it match.
    table next_hops {
        key = {
            meta.group: exact   @name("group");
            lowest:     ternary @name("bit");
        }
        actions = { next_hop; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    // Plain BIER to another neighbour, for those of the neighbour's bits that are in the F-BM.
    action lfa(bit_string_t f_bm, port_t port, mac_t src_mac, mac_t dst_mac) {
        mask = mask & f_bm;
        meta.port = port;
        meta.src_mac = src_mac;
        meta.dst_mac = dst_mac;
    }

    // BIER in IP, which this switch routes like any packet.
    action tunnel(bit_string_t f_bm, ipv4_address_t src, ipv4_address_t dst, bit<16> mtu_bytes) {
        mask = mask & f_bm;
        meta.carried = 1;
        meta.carrier_src = src;
        meta.carrier_dst = dst;
        mtu = mtu_bytes;
    }

    // A backup that all bits of a neighbour take has any bit as its pattern, and all bits as its F-BM.
    table backups {
        key = {
            meta.group: exact   @name("group");
            neighbour:  exact   @name("instance");
            lowest:     ternary @name("bit");
        }
        actions = { lfa; tunnel; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    apply {
        lowest = bits & (~bits + 1);
        mask = 0;
        mode = TO_NEXT_HOP;
        bit<1> up = 0;
        bool is_known = next_hops.apply().hit;
        if (is_known) {
            port_up.read(up, (bit<32>)meta.port);
        }
        if (up == 0) {
            bool has_backup = false;
            bit<1> backup_up = 0;
            if (is_known && !was_repaired) {
                if (!backups.apply().hit) {
                    mask = 0;  // of the neighbour's bits each has a backup of its own, or none
                } else if (meta.carried == 1) {
                    has_backup = true;
                    if (bier_bytes + IPV4_BYTES + GRE_BYTES > (bit<32>)mtu) {
                        tunnel_mtu_exceeded.count(0);
                        mode = AS_IT_IS;
                    } else {
                        tunnel_repairs.count(0);
                    }
                } else {
                    port_up.read(backup_up, (bit<32>)meta.port);
                    if (backup_up == 1) {
                        has_backup = true;
                        lfa_repairs.count(0);
                    }
                }
            }
            if (!has_backup) {
                no_backup.count(0);
                mode = AS_IT_IS;
            }
        }
        // A bit is looked at once, with any table entries.
        mask = mask | lowest;
    }
}

// The output of this pass: the payload to receivers here, copies to all neighbours, or the copy for one of them. Of `bits`, those
// that the copies of this pass are for are `now`, and the others are left in `rest`. Mode AS_IT_IS: nothing is sent. Most packets have
// copies for neighbours alone, and nothing is left of them: then ingress ends here.
control SelectCopies(in headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata, inout bit_string_t rest,
                     in bit<8> ttl, in bool was_repaired, in bit<32> bier_bytes, out bit<3> mode, out bit_string_t now,
                     out bit<16> m_grp, out bool is_single) {
#if REPLICATION != RECIRCULATE
    // Bit n: whether there is a signal at port n; the switch's agent keeps it.
    @port_state register<ports_t>(1) ports_up;
#endif

    counter(1, CounterType.packets) unknown_bift;
    counter(1, CounterType.packets) unowned_bits;   // bits of no BFER that this switch knows a way to
    counter(1, CounterType.packets) ttl_expired;
    counter(1, CounterType.packets) unknown_group;  // a payload whose channel nobody here has joined
    counter(1, CounterType.packets) malformed_payload;
    counter(1, CounterType.packets) payload_ttl_expired;
    direct_counter(CounterType.packets_and_bytes) bift_counter;

    Receivers() receivers;
    OneNextHop() one_next_hop;

    bit_string_t own = 0;
    bool has_unowned = false;

    // own_bit: this switch's, if it is a BFER of this set; reachable_bits: those that the BIFT has a neighbour for. The groups of the
    // ECMP buckets follow each other. neighbour_ports: those of all its neighbours.
    action bift(bit_string_t own_bit, bit_string_t reachable_bits, bit<16> first_group, bit<16> bucket_mask,
                ports_t neighbour_ports) {
        own = own_bit;
        has_unowned = rest & ~(own_bit | reachable_bits) != 0;
        rest = rest & (own_bit | reachable_bits);
        meta.group = first_group + ((bit<16>)meta.entropy & bucket_mask);
#if REPLICATION == RECIRCULATE
        is_single = true;
#else
        ports_t up;
        ports_up.read(up, 0);
        is_single = neighbour_ports & ~up != 0;
#endif
    }

    table bifts {
        key = {
            meta.bift_id: exact @name("bift_id");
        }
        actions = { bift; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = bift_counter;
        size = 4096;
    }

#if REPLICATION == CLUSTERS
    direct_counter(CounterType.packets) cluster_counter;
    counter(1, CounterType.packets) cluster_misses;

    // Its replicas have the numbers that their neighbours have in the bucket's own group.
    action cluster(bit<16> multicast_group) {
        m_grp = multicast_group;
    }

    // A pattern is zero outside the F-BMs of its neighbours.
    table clusters {
        key = {
            meta.group: exact   @name("group");
            rest:       ternary @name("bit_string");
        }
        actions = { cluster; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = cluster_counter;
        size = 4096;
    }
#endif

    apply {
        mode = AS_IT_IS;
        now = 0;
        m_grp = 0;
        is_single = false;
        if (!bifts.apply().hit) {
            unknown_bift.count(0);
            rest = 0;
        } else {
            if (has_unowned) {
                unowned_bits.count(0);
            }
            if (ttl <= 1 && rest & ~own != 0 || ttl == 0) {
                ttl_expired.count(0);
                rest = ttl == 0 ? 0 : rest & own;
            }
            if (rest & own != 0) {
                now = own;
                rest = rest & ~own;
                bool is_known;
                receivers.apply(hdr, m_grp, is_known);
                if (!is_known) {
                    unknown_group.count(0);
                } else if (hdr.ipv4.isValid() && (hdr.ipv4.version != 4 || hdr.ipv4.ihl < 5) ||
                           hdr.ipv6.isValid() && hdr.ipv6.version != 6) {
                    malformed_payload.count(0);
                } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl <= 1 || hdr.ipv6.isValid() && hdr.ipv6.hop_limit <= 1) {
                    payload_ttl_expired.count(0);
                } else if (m_grp != 0) {
                    mode = DELIVER;
                }
            } else if (rest != 0) {
                m_grp = meta.group;
#if REPLICATION == CLUSTERS
                if (!is_single) {
                    bit<32> sample;
                    random(sample, (bit<32>)0, (bit<32>)(CLUSTER_SAMPLING - 1));
                    if (sample == 0) {
                        digest<bit_string_sample_t>(1, { meta.group, rest });
                    }
                    if (!clusters.apply().hit) {
                        cluster_misses.count(0);
#if CLUSTER_MISSES == RECIRCULATE
                        is_single = true;
#endif
                    }
                }
#endif
                if (is_single) {
                    bit_string_t mask;
                    one_next_hop.apply(meta, rest, was_repaired, bier_bytes, mask, mode);
                    now = rest & mask;
                    rest = rest & ~mask;
                } else {
                    if (meta.next_set == 0) {
                        meta.mode = REPLICATE;
                        meta.bits = rest;
                        standard_metadata.mcast_grp = m_grp;
                        exit;
                    }
                    mode = REPLICATE;
                    now = rest;
                    rest = 0;
                }
            }
        }
    }
}

#endif
