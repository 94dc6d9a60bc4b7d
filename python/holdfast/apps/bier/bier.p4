// Multicast by Bit Index Explicit Replication: BFIR, BFR and BFER (RFC 8279) with the header of RFC 8296, BIER fast reroute (draft-ietf-bier-frr), and
// an IPv4 and IPv6 router with IP fast reroute beneath.
//
// The whole of forwarding is in ingress, in as many passes as a packet needs; egress rewrites a copy by what ingress has said of it. That holds
// for clones too, which come to egress as the packet came to the switch. The path of a packet to a link that works is one pass, and
// asks nothing of egress but to leave.
//
// ICMP is left alone: packets that expire or are too long are counted and dropped, not answered.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "../domain.p4"
#include "../discovery.p4"
#include "packet.p4"
#include "routing.p4"
#include "channels.p4"
#include "replication.p4"
#ifdef ONE_PLUS_ONE
#include "one_plus_one.p4"
#endif

// The first TTL of a BIER header, before this switch takes one from it.
const bit<8> BIER_TTL = 64;

const bit<8> TUNNEL_TTL = 64;

// Values of instance_type.
const bit<32> CLONE        = 1;
const bit<32> RECIRCULATED = 4;
const bit<32> RESUBMITTED  = 6;

// Clone sessions. Session p + 1 sends to port p; that of a multicast group has the group's number, which is higher.
const bit<32> FIRST_PORT_SESSION = 1;

// The session in which packets go round. With -D RECIRCULATION_PORTS=k there are k such sessions, used in turn; with
// -D LOOPED_RECIRCULATION their ports are looped outside, and egress only sends.
#ifndef FIRST_RECIRCULATION_SESSION
#define FIRST_RECIRCULATION_SESSION 514
#endif
#ifndef RECIRCULATION_PORTS
#define RECIRCULATION_PORTS 1
#endif

const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_CE      = 3;

// Ends the tunnels that end here: first an IP packet's, then a BIER packet's. `counts`: this is the packet's first pass.
control EndTunnels(inout headers_t hdr, in bool counts, out bool drops) {
    counter(1, CounterType.packets_and_bytes) decapsulated;
    counter(1, CounterType.packets) congestion_unmarkable;

    // This router's own address.
    table loopbacks {
        key = {
            hdr.repair.dst_addr: exact;
        }
        actions = { NoAction; }
        const default_action = NoAction();
        size = 4;
    }

    // The same, and its interfaces' not-via addresses (RFC 6981).
    table carrier_loopbacks {
        key = {
            hdr.carrier.dst_addr: exact;
        }
        actions = { NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        drops = false;
        if (hdr.repair.isValid() && loopbacks.apply().hit) {
            // A congestion mark of the outer header is carried over to the inner one (RFC 6040, section 4.2).
            bit<2> outer = hdr.repair.diffserv[1:0];
            bit<2> inner = hdr.carrier.isValid() ? hdr.carrier.diffserv[1:0]
                                                 : (hdr.ipv4.isValid() ? hdr.ipv4.diffserv[1:0] : 2w0);
            hdr.repair.setInvalid();
            if (counts) {
                decapsulated.count(0);
            }
            if (outer == ECN_CE && inner == ECN_NOT_ECT) {
                congestion_unmarkable.count(0);
                drops = true;
            }
        }
        if (!drops && !hdr.repair.isValid() && hdr.carrier.isValid() && carrier_loopbacks.apply().hit) {
            if (counts) {
                decapsulated.count(0);
            }
            if (hdr.carrier.diffserv[1:0] == ECN_CE) {
                // BIER headers have no place for it (RFC 8296 has DSCP alone).
                congestion_unmarkable.count(0);
                drops = true;
            }
            hdr.carrier.setInvalid();
            hdr.gre.setInvalid();
        }
    }
}

control BierIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) malformed;
    counter(1, CounterType.packets) wrong_version;
    counter(1, CounterType.packets) wrong_bsl;
    counter(1, CounterType.packets) ttl_expired;        // of IP
    counter(1, CounterType.packets) mtu_exceeded;       // at the BFIR
    counter(1, CounterType.packets) unknown_channel;
    counter(1, CounterType.packets) foreign_multicast;  // IP multicast from a router of this network, which would have sent BIER
    // Of IGMP and MLD for the controller, by ingress port: a flood from one port does not delay the reports of others.
    meter(PORTS, MeterType.packets) report_rate;
    counter(PORTS, CounterType.packets) report_rate_exceeded;
    direct_counter(CounterType.packets_and_bytes) route_counter_v6;

    LeadsToDomain() leads_to_domain;
    CountRefused() count_refused;
    MeterDiscovery() meter_discovery;
    EndTunnels() end_tunnels;
    Impose() impose;
    SelectCopies() select_copies;
    Routing() routing;
#ifdef ONE_PLUS_ONE
    NumberStream() number_stream;
    EliminateCopies() eliminate_copies;
#endif

#if RECIRCULATION_PORTS > 1
    register<bit<32>>(1) next_recirculation;
#endif

    bool is_bier = false;  // there are bits to forward
    bool is_unicast = false;
    bool from_tunnel = false;
    bool punts = false;
    bool sends = false;
    bool is_single = false;
    bit_string_t rest = 0;
    bit_string_t now = 0;
    bit<16> m_grp = 0;
    bit<3> mode = AS_IT_IS;
    bit<8> ttl = BIER_TTL;

    action forward_v6(port_t port, mac_t src_mac, mac_t dst_mac) {
        sends = true;
        meta.port = port;
        meta.src_mac = src_mac;
        meta.dst_mac = dst_mac;
    }

    action punt_v6() {
        punts = true;
    }

    action drop() { }

    table ipv6_lpm {
        key = {
            hdr.ipv6.dst_addr: lpm;
        }
        actions = {
            forward_v6;
            punt_v6;
            drop;
        }
        default_action = drop();
        counters = route_counter_v6;
        size = 65536;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        if (standard_metadata.instance_type != RECIRCULATED && standard_metadata.instance_type != RESUBMITTED) {
            meta.from_port = standard_metadata.ingress_port;
        }

        bool is_ipv6 = hdr.ipv6.isValid();
        bool is_multicast = is_ipv6 ? hdr.ipv6.dst_addr[127:120] == 0xff : hdr.ipv4.isValid() && hdr.ipv4.dst_addr[31:28] == 0xe;
        bool in_tunnel = hdr.repair.isValid() || hdr.carrier.isValid();
        bool from_core = false;
        if (meta.again == 0 && standard_metadata.instance_type != RECIRCULATED) {
            // The domain owns BIER headers, and all that goes to its routers' own addresses. (What goes round has been let in already.)
            bool is_owned = hdr.bier.isValid() || meta.to_router == 1;
            if (is_owned || is_multicast) {
                leads_to_domain.apply(meta.from_port, from_core);
            }
            if (is_owned && !from_core) {
                count_refused.apply(meta.from_port);
                mark_to_drop(standard_metadata);
                exit;
            }
        }
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }

        if (in_tunnel) {
            bool in_carrier = hdr.carrier.isValid();
            bool drops;
            end_tunnels.apply(hdr, meta.again == 0, drops);
            if (drops) {
                mark_to_drop(standard_metadata);
                exit;
            }
            from_tunnel = in_carrier && !hdr.carrier.isValid();
            if (from_tunnel) {
                meta.was_repaired = 1;
            }
        }

        // The kind of packet.
        if (hdr.repair.isValid() || hdr.carrier.isValid()) {
            is_unicast = true;
        } else if (hdr.bits.isValid()) {
            is_bier = true;
            meta.bift_id = hdr.bier.bift_id;
            meta.entropy = hdr.bier.entropy;
            ttl = hdr.bier.ttl;
            rest = meta.again == 1 ? meta.rest : hdr.bits.bit_string;
        } else if (hdr.bier.isValid()) {
            if (hdr.bier.ver != 0) {
                wrong_version.count(0);
            } else {
                wrong_bsl.count(0);
            }
        } else if (from_tunnel) {
            malformed.count(0);  // nothing that is known is in it
        } else if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            bool is_link_local = is_ipv6 ? hdr.ipv6.dst_addr[119:116] == 0 && hdr.ipv6.dst_addr[115:112] <= 2
                                         : hdr.ipv4.dst_addr[31:8] == 0xe00000;
            if (is_multicast && (!is_ipv6 && hdr.ipv4.protocol == PROTOCOL_IGMP ||
                                 hdr.icmpv6.isValid() &&
                                 (hdr.icmpv6.type >= 130 && hdr.icmpv6.type <= 132 || hdr.icmpv6.type == 143))) {
                bit<2> colour;  // IGMP and MLD are the controller's
                report_rate.execute_meter((bit<32>)meta.from_port, colour);
                if (colour == V1MODEL_METER_COLOR_RED) {
                    report_rate_exceeded.count((bit<32>)meta.from_port);
                } else {
                    punts = true;
                }
            } else if (is_multicast && is_link_local) {
                // Nobody's but the link's.
            } else if ((is_ipv6 ? hdr.ipv6.hop_limit : hdr.ipv4.ttl) <= 1) {
                ttl_expired.count(0);
            } else if (!is_multicast) {
                is_unicast = true;
            } else if (meta.again == 1 && meta.rest != 0) {
                is_bier = true;
                rest = meta.rest;
            } else if (from_core) {
                foreign_multicast.count(0);
            } else {
                bool is_channel;
                bit<16> mtu;
                impose.apply(hdr, meta, is_ipv6, is_channel, mtu);
                bit<32> bytes = is_ipv6 ? (bit<32>)hdr.ipv6.payload_len + 40 : (bit<32>)hdr.ipv4.total_len;
                bool fits = bytes + BIER_BYTES <= (bit<32>)mtu;
#ifdef ONE_PLUS_ONE
                if (is_channel) {
                    number_stream.apply(hdr, meta, is_ipv6, bytes + BIER_BYTES, mtu, fits);
                }
#endif
                if (!is_channel) {
                    unknown_channel.count(0);
                } else if (!fits) {
                    mtu_exceeded.count(0);
                } else if (meta.bits != 0) {
                    meta.imposes = 1;
                    is_bier = true;
                    rest = meta.bits;
                    if (meta.again == 0) {
                        // allow(invalid): the fields of the other version of IP are always zero, or add no entropy
                        hash(meta.entropy, HashAlgorithm.crc32, (bit<20>)0,
                             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol,
                               hdr.ipv6.src_addr, hdr.ipv6.dst_addr, hdr.ipv6.flow_label, hdr.ipv6.next_header },
                             (bit<32>)0x100000);
                    }
                }
            }
        } else if (hdr.ethernet.ether_type == ETHERTYPE_LLDP) {
            meter_discovery.apply(meta.from_port, punts);
        }

        bit<32> bytes = 0;
        if (is_bier) {
            // Of the BIER packet, for tunnels that begin here.
            bytes = standard_metadata.packet_length - ETHERNET_BYTES;
            if (from_tunnel) {
                bytes = bytes - IPV4_BYTES - GRE_BYTES;
            }
            if (meta.imposes == 1) {
                bytes = bytes + BIER_BYTES;
#ifdef ONE_PLUS_ONE
                if (meta.tagged == 1) {
                    bytes = bytes + TAG_BYTES;
                }
#endif
            }
#ifdef RECIRCULATES
            // Of several sets, each but the last goes round as a packet of its own.
            if (meta.next_set == 0)
#endif
                select_copies.apply(hdr, meta, standard_metadata, rest, ttl, meta.was_repaired == 1, bytes, mode, now, m_grp, is_single);
#ifdef ONE_PLUS_ONE
            if (mode == DELIVER && hdr.rtag.isValid()) {
                bool passes;
                eliminate_copies.apply(hdr, standard_metadata.ingress_global_timestamp, passes);
                if (!passes) {
                    mode = AS_IT_IS;
                }
            }
#endif
            meta.dst_addr = meta.carrier_dst;
            meta.bier_bytes = (bit<16>)bytes;
        }
        if (is_unicast && (hdr.repair.isValid() || hdr.carrier.isValid() || hdr.ipv4.isValid())) {
            // The outermost header's.
            bit<8> ip_ttl;
            if (hdr.repair.isValid()) {
                ip_ttl = hdr.repair.ttl;
                meta.dst_addr = hdr.repair.dst_addr;
                bytes = (bit<32>)hdr.repair.total_len;
            } else if (hdr.carrier.isValid()) {
                ip_ttl = hdr.carrier.ttl;
                meta.dst_addr = hdr.carrier.dst_addr;
                bytes = (bit<32>)hdr.carrier.total_len;
            } else {
                ip_ttl = hdr.ipv4.ttl;
                meta.dst_addr = hdr.ipv4.dst_addr;
                bytes = (bit<32>)hdr.ipv4.total_len;
            }
            if (ip_ttl <= 1) {
                ttl_expired.count(0);
                is_unicast = false;
            }
        } else if (is_unicast) {
            is_unicast = false;
            ipv6_lpm.apply();
        }
        if (is_unicast || meta.carried == 1 && mode == TO_NEXT_HOP) {
            bit<32> length = is_unicast ? bytes : bytes + IPV4_BYTES + GRE_BYTES;
            routing.apply(meta, length, hdr.repair.isValid(), sends, punts);
            if (!is_unicast && !sends) {
                mode = AS_IT_IS;
            }
        }

        // The output of the packet.
        if (punts) {
            // As it arrived.
            standard_metadata.egress_spec = CPU_PORT;
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.from_port;
            hdr.packet_in._pad = 0;
        } else if (!is_bier) {
            if (!sends) {
                mark_to_drop(standard_metadata);
            } else {
                standard_metadata.egress_spec = meta.port;
                hdr.ethernet.src_addr = meta.src_mac;
                hdr.ethernet.dst_addr = meta.dst_mac;
                if (hdr.repair.isValid()) {
                    decrement_ttl(hdr.repair);
                } else if (hdr.carrier.isValid()) {
                    decrement_ttl(hdr.carrier);
                } else if (hdr.ipv4.isValid()) {
                    decrement_ttl(hdr.ipv4);
                } else {
                    hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                }
            }
        } else if (rest == 0 && meta.next_set == 0) {
            // The last pass, and mostly the first.
            meta.mode = mode;
            meta.bits = now;
            if (mode == AS_IT_IS) {
                mark_to_drop(standard_metadata);
            } else if (mode == TO_NEXT_HOP) {
                standard_metadata.egress_spec = meta.port;
            } else {
                standard_metadata.mcast_grp = m_grp;
            }
        } else if (!is_single && meta.next_set == 0) {
            // To the receivers here, if there are any, and to all neighbours.
            if (mode == DELIVER) {
                meta.clone_mode = DELIVER;
                clone_preserving_field_list(CloneType.I2E, (bit<32>)m_grp, COPY);
            }
            meta.mode = REPLICATE;
            meta.bits = rest;
            standard_metadata.mcast_grp = meta.group;
        } else {
            meta.again = 1;
            meta.clone_group = meta.group;
#ifdef RECIRCULATES
            bit<32> session = FIRST_RECIRCULATION_SESSION;
#if RECIRCULATION_PORTS > 1
            bit<32> turn;
            next_recirculation.read(turn, 0);
            next_recirculation.write(0, turn == RECIRCULATION_PORTS - 1 ? 0 : turn + 1);
            session = session + turn;
#endif
            meta.clone_mode = GO_ROUND;
            meta.clone_bits = rest;
            clone_preserving_field_list(CloneType.I2E, session, COPY);
            meta.mode = mode;
            meta.bits = now;
            if (meta.next_set != 0) {
                meta.rest = 0;
                resubmit_preserving_field_list(REST);
            } else if (mode == AS_IT_IS) {
                mark_to_drop(standard_metadata);
            } else if (mode == TO_NEXT_HOP) {
                standard_metadata.egress_spec = meta.port;
            } else {
                standard_metadata.mcast_grp = m_grp;
            }
#else
            meta.clone_mode = mode;
            meta.clone_bits = now;
            meta.rest = rest;
            if (mode != AS_IT_IS) {
                bit<32> session = mode == TO_NEXT_HOP ? FIRST_PORT_SESSION + (bit<32>)meta.port : (bit<32>)m_grp;
                clone_preserving_field_list(CloneType.I2E, session, COPY);
            }
            resubmit_preserving_field_list(REST);
#endif
        }
    }
}

control BierEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The copy for a neighbour: its F-BM leaves the bits of BFERs behind it.
    action copy(bit_string_t f_bm, mac_t src_mac, mac_t dst_mac) {
        meta.bits = meta.bits & f_bm;
        meta.src_mac = src_mac;
        meta.dst_mac = dst_mac;
    }

    action no_copy() {
        meta.bits = 0;
    }

    table copies {
        key = {
            meta.group:                   exact @name("group");
            standard_metadata.egress_rid: exact @name("instance");
        }
        actions = { copy; @defaultonly no_copy; }
        const default_action = no_copy();
        size = 65536;
    }

    action set_mac(mac_t mac) {
        hdr.ethernet.src_addr = mac;
    }

    // The addresses of ports with receivers.
    table port_macs {
        key = {
            standard_metadata.egress_port: exact @name("port");
        }
        actions = { set_mac; @defaultonly NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    // The payload gets its BIER header, and is forwarded as a router forwards it.
    action impose() {
        hdr.bier.setValid();
        hdr.bier.bift_id = meta.bift_id;
        hdr.bier.tc = 0;
        hdr.bier.s = 1;
        hdr.bier.ttl = BIER_TTL;
        hdr.bier.nibble = NIBBLE;
        hdr.bier.ver = 0;
        hdr.bier.bsl = BSL_CODE;
        hdr.bier.entropy = meta.entropy;
        hdr.bier.oam = 0;
        hdr.bier.rsv = 0;
        hdr.bier.bfir_id = meta.bfir_id;
        hdr.bits.setValid();
        if (hdr.ipv6.isValid()) {
            hdr.bier.dscp = hdr.ipv6.traffic_class[7:2];
            hdr.bier.proto = BIER_PROTO_IPV6;
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
        } else {
            // allow(invalid): only packets of IP get a BIER header
            hdr.bier.dscp = hdr.ipv4.diffserv[7:2];
            hdr.bier.proto = BIER_PROTO_IPV4;
            decrement_ttl(hdr.ipv4);
        }
#ifdef ONE_PLUS_ONE
        if (meta.tagged == 1) {
            hdr.bier.proto = BIER_PROTO_ETHERNET;
            hdr.inner = hdr.ethernet;
            hdr.inner.ether_type = ETHERTYPE_RTAG;
            hdr.rtag.setValid();
            hdr.rtag.reserved = 0;
            hdr.rtag.sequence_number = meta.sequence;
            hdr.rtag.ether_type = hdr.ethernet.ether_type;
        }
#endif
    }

    // The packet as a BIER packet right behind Ethernet.
    action bare() {
        hdr.repair.setInvalid();
        hdr.carrier.setInvalid();
        hdr.gre.setInvalid();
        hdr.ethernet.ether_type = ETHERTYPE_BIER;
        hdr.bits.bit_string = meta.bits;
    }

    action into_tunnel() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.carrier.setValid();
        hdr.carrier.version = 4;
        hdr.carrier.ihl = 5;
        // allow(invalid): only packets of BIER go into a carrier
        hdr.carrier.diffserv = hdr.bier.dscp ++ ECN_NOT_ECT;
        hdr.carrier.total_len = meta.bier_bytes + (bit<16>)(IPV4_BYTES + GRE_BYTES);
        hdr.carrier.identification = 0;  // not fragmented, never will be (RFC 6864, section 4.1)
        hdr.carrier.flags = 2;           // do not fragment
        hdr.carrier.frag_offset = 0;
        hdr.carrier.ttl = TUNNEL_TTL;
        hdr.carrier.protocol = PROTOCOL_GRE;
        hdr.carrier.src_addr = meta.carrier_src;
        hdr.carrier.dst_addr = meta.carrier_dst;
        hdr.gre.setValid();
        hdr.gre.flags_and_version = 0;
        hdr.gre.protocol = ETHERTYPE_BIER;
    }

    // Towards a PQ node (RFC 7490).
    action into_repair() {
        bool has_carrier = hdr.carrier.isValid();
        hdr.repair.setValid();
        hdr.repair.version = 4;
        hdr.repair.ihl = 5;
        // allow(invalid): a packet that goes into a repair tunnel is IPv4 or has a carrier
        hdr.repair.diffserv = has_carrier ? hdr.carrier.diffserv : hdr.ipv4.diffserv;
        hdr.repair.total_len = (has_carrier ? hdr.carrier.total_len : hdr.ipv4.total_len) + (bit<16>)IPV4_BYTES;
        hdr.repair.identification = 0;
        hdr.repair.flags = 2;
        hdr.repair.frag_offset = 0;
        hdr.repair.ttl = TUNNEL_TTL;
        hdr.repair.protocol = PROTOCOL_IPV4;
        hdr.repair.src_addr = meta.repair_src;
        hdr.repair.dst_addr = meta.repair_dst;
    }

    apply {
        if (standard_metadata.instance_type == CLONE) {
            meta.mode = meta.clone_mode;
            meta.group = meta.clone_group;
            meta.bits = meta.clone_bits;
        }
        if (meta.mode == REPLICATE) {
            copies.apply();
        }
        if (meta.mode == REPLICATE || meta.mode == TO_NEXT_HOP) {
            if (meta.bits == 0) {
                mark_to_drop(standard_metadata);
                exit;
            }
            if (meta.imposes == 1) {
                impose();
            }
            bare();
            hdr.ethernet.src_addr = meta.src_mac;
            hdr.ethernet.dst_addr = meta.dst_mac;
            hdr.bier.ttl = hdr.bier.ttl - 1;
            if (meta.carried == 1) {
                into_tunnel();
            }
        } else if (meta.mode == DELIVER) {
            if (standard_metadata.egress_port == meta.from_port) {
                mark_to_drop(standard_metadata);  // its sender has it
            } else {
                port_macs.apply();
                hdr.repair.setInvalid();
                hdr.carrier.setInvalid();
                hdr.gre.setInvalid();
                hdr.bier.setInvalid();
                hdr.bits.setInvalid();
#ifdef ONE_PLUS_ONE
                hdr.inner.setInvalid();
                hdr.rtag.setInvalid();
#endif
                // RFC 1112, section 6.4; RFC 2464, section 7.
                if (hdr.ipv6.isValid()) {
                    hdr.ethernet.ether_type = ETHERTYPE_IPV6;
                    hdr.ethernet.dst_addr = 16w0x3333 ++ hdr.ipv6.dst_addr[31:0];
                    hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                } else {
                    hdr.ethernet.ether_type = ETHERTYPE_IPV4;
                    // allow(invalid): a packet that leaves BIER is of IP
                    hdr.ethernet.dst_addr = 25w0x200bc ++ hdr.ipv4.dst_addr[22:0];
                    decrement_ttl(hdr.ipv4);
                }
            }
        }
#ifdef RECIRCULATES
        else if (meta.mode == GO_ROUND) {
            if (meta.imposes == 1) {
                impose();
            }
            bare();
#ifndef LOOPED_RECIRCULATION
            recirculate_preserving_field_list(ROUND);
#endif
        }
#endif
        if (meta.repaired == 1) {
            into_repair();
        }
    }
}

V1Switch(BierParser(), BierVerifyChecksum(), BierIngress(), BierEgress(), BierComputeChecksum(), BierDeparser()) main;
