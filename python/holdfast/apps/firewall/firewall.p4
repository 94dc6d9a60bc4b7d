// A firewall for IPv4 and IPv6: MAC addresses and IP addresses bound to ports, and flows that rules allow. All other packets are dropped,
// with a reason that is counted and logged.
//
// It forwards as a router. With BRIDGED it forwards as a bridge, and guards ARP, neighbour discovery and address assignment. With
// BINDINGS_ONLY it checks bindings and routes, without rules and flows: the firewall of Claeson and Kruse (2021), section 3.4, for
// both versions of IP.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "packet.p4"
#include "reasons.p4"
#include "flows.p4"

#ifdef BRIDGED
#ifdef BINDINGS_ONLY
#error "BRIDGED and BINDINGS_ONLY exclude each other"
#endif
// Of all ports that take part.
const bit<16> FLOOD_GROUP = 1;
#endif

const bit<32> ETHERNET_BYTES = 14;

#ifndef BINDINGS
#define BINDINGS 65536
#endif

// The controller's digest of a dropped packet.
struct dropped_t {
    bit<8>   reason;
    port_t   port;
    mac_t    src_mac;
    mac_t    dst_mac;
    bit<16>  ether_type;
    bit<128> src_addr;
    bit<128> dst_addr;
    bit<8>   protocol;
    bit<16>  src_port;
    bit<16>  dst_port;
}

// The role of a port. `checks_mac`: only bound MAC addresses send. `checks_address`: only bound pairs of MAC and IP address.
// `checks_network`: only addresses of the port's own networks, and those bound to it (RFC 2827). `transit`: packets between two such ports are not judged, because another switch has judged them.
struct role_t {
    bit<8> zone;
    bit<1> only_replies;
    bit<1> checks_mac;
    bit<1> checks_address;
    bit<1> checks_network;
    bit<1> authenticated;
    bit<1> dhcp_server;
    bit<1> router;
    bit<1> transit;
}

control FirewallIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(REASONS, CounterType.packets_and_bytes) drops;
    // Log entries for each reason: a flood for one reason does not hide the others.
    meter(REASONS, MeterType.packets) log_rate;
    meter(512, MeterType.packets) controller_rate;
    counter(1, CounterType.packets) to_controller;

#ifndef BINDINGS_ONLY
    JudgeFlow() judge_flow;
    settings_t settings = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
#endif
    role_t role = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    bool known_port = false;
    bit<8> to_zone = 0;
    bit<1> to_transit = 0;
    bit<128> sender_address = 0;
    bit<128> receiver_address = 0;
    bit<128> claimed_address = 0;
    bit<16> holder = 0;
    bool sends = false;
    port_t out_port = 0;
    mac_t next_src = 0;
    mac_t next_dst = 0;

    action drop() { }

#ifndef BINDINGS_ONLY
    // One write replaces a rule set: the epoch decides which generation of rules is looked up.
    action activate(bit<32> epoch, bit<1> judges_again, bit<64> k0, bit<64> k1, bit<64> k2, bit<64> k3, bit<64> k4, bit<64> k5,
                    bit<64> k6, bit<64> k7, bit<64> k8, bit<64> k9, bit<64> k10) {
        settings = { 1, judges_again, epoch, k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10 };
    }

    table rule_set {
        key = { }
        actions = {
            activate;
            NoAction;
        }
        default_action = NoAction();
    }
#endif

    action set_role(bit<8> zone, bit<1> only_replies, bit<1> checks_mac, bit<1> checks_address, bit<1> checks_network, bit<1> authenticated,
                    bit<1> dhcp_server, bit<1> router, bit<1> transit) {
        known_port = true;
        role = { zone, only_replies, checks_mac, checks_address, checks_network, authenticated, dhcp_server, router, transit };
    }

    table ports {
        key = {
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = {
            set_role;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    // The MAC addresses that may send from a port.
    table mac_bindings {
        key = {
            standard_metadata.ingress_port: exact @name("port");
            hdr.ethernet.src_addr:          exact @name("mac");
        }
        actions = { NoAction; }
        const default_action = NoAction();
        size = BINDINGS;
    }

    table address_bindings {
        key = {
            standard_metadata.ingress_port: exact @name("port");
            hdr.ethernet.src_addr:          exact @name("mac");
            sender_address:                 exact @name("address");
        }
        actions = { NoAction; }
        const default_action = NoAction();
        size = BINDINGS;
    }

    // Whose an address is: bound addresses, and the networks of ports. `number`: its only port, or that of a set of ports.
    action belongs_to(bit<16> number) {
        holder = number;
    }

    table sources {
        key = {
            claimed_address: lpm @name("address");
        }
        actions = {
            belongs_to;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = BINDINGS;
    }

    // The ports of a set.
    table port_sets {
        key = {
            standard_metadata.ingress_port: exact @name("port");
            holder:                         exact @name("set");
        }
        actions = { NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

#ifdef BRIDGED
    bool is_elsewhere = false;

    action owned(port_t port) {
        is_elsewhere = port != standard_metadata.ingress_port;
    }

    // The port of a station, as a sender: another port's frames would move it in the bridges behind.
    table mac_owners {
        key = {
            hdr.ethernet.src_addr: exact @name("mac");
        }
        actions = {
            owned;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = BINDINGS;
    }

    // The port of a MAC address.
    action deliver(port_t port, bit<8> zone, bit<1> transit) {
        sends = true;
        out_port = port;
        to_zone = zone;
        to_transit = transit;
    }

    table stations {
        key = {
            hdr.ethernet.dst_addr: exact @name("mac");
        }
        actions = {
            deliver;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = BINDINGS;
    }
#else
    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        sends = true;
        out_port = port;
        next_src = src_mac;
        next_dst = dst_mac;
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
        size = 65536;
    }

    action forward_v6(port_t port, mac_t src_mac, mac_t dst_mac) {
        sends = true;
        out_port = port;
        next_src = src_mac;
        next_dst = dst_mac;
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
        size = 65536;
    }

    // A MAC address that may receive from a port.
    action deliver(bit<8> zone, bit<1> transit) {
        to_zone = zone;
        to_transit = transit;
    }

    table receivers {
        key = {
            out_port: exact @name("port");
            next_dst: exact @name("mac");
        }
        actions = {
            deliver;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = BINDINGS;
    }
#endif

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }

        reason_t reason = PASSES;
        bool is_ipv4 = hdr.ipv4.isValid();
        bool is_ipv6 = hdr.ipv6.isValid();
        bool punts = false;
        bool floods = false;
        bit<32> header_bytes = is_ipv4 ? 32w20 : 32w40;
        // allow(invalid): without IP nothing uses it
        bit<32> ip_bytes = is_ipv4 ? (bit<32>)hdr.ipv4.total_len : (bit<32>)hdr.ipv6.payload_len + 40;
        bit<32> carried = ip_bytes - header_bytes;
        bit<32> payload = 0;

        // Headers that are possible from any sender.
        ports.apply();
        if (standard_metadata.parser_error == error.PacketTooShort) {
            reason = TRUNCATED;
        } else if (standard_metadata.parser_error != error.NoError) {
            reason = MALFORMED;
        } else if (standard_metadata.checksum_error == 1) {
            reason = BAD_CHECKSUM;
        } else if (!known_port) {
            reason = UNKNOWN_PORT;
        } else if (is_ipv4 || is_ipv6) {
            if (ip_bytes < header_bytes) {
                reason = MALFORMED;
            } else if (standard_metadata.packet_length < ip_bytes + ETHERNET_BYTES) {
                reason = TRUNCATED;
            } else if (is_ipv4 && hdr.ipv4.ihl != 5) {
                reason = IP_OPTIONS;
            } else if (is_ipv4 && (hdr.ipv4.flags & 1 != 0 || hdr.ipv4.frag_offset != 0)) {
                reason = FRAGMENT;
            } else if (is_ipv6 && meta.kind == KIND_OTHER) {
                bit<8> next = hdr.ipv6.next_header;
                if (next == 44) {
                    reason = FRAGMENT;
                } else if (next == 0 || next == 43 || next == 50 || next == 51 || next == 59 || next == 60 || next == 135 || next == 139 ||
                           next == 140) {
                    reason = EXTENSION_HEADER;
                }
            } else if (meta.kind == KIND_TCP) {
                bit<32> tcp_bytes = (bit<32>)meta.data_offset << 2;
                payload = carried - tcp_bytes;
                bit<8> control_bits = meta.flags & TCP_CONTROL;
                if (meta.data_offset < 5 || tcp_bytes > carried) {
                    reason = MALFORMED;
                } else if (control_bits != TCP_ACK && control_bits != TCP_SYN && control_bits != TCP_SYN | TCP_ACK &&
                           control_bits != TCP_FIN | TCP_ACK && control_bits != TCP_RST && control_bits != TCP_RST | TCP_ACK) {
                    reason = TCP_FLAGS;
                }
            } else if (meta.kind == KIND_UDP || meta.kind == KIND_DHCP) {
                if (meta.udp_length < 8 || (bit<32>)meta.udp_length > carried) {
                    reason = MALFORMED;
                }
            } else if (meta.kind == KIND_ERROR) {
                if (carried < header_bytes + 16) {
                    reason = MALFORMED;
                }
            } else if (meta.kind != KIND_OTHER) {
                // allow(invalid): only packets of IPv6 are of this kind
                if (carried < 8 || meta.kind == KIND_NEIGHBOUR && (carried < 24 && meta.type >= 135 || hdr.ipv6.hop_limit != 255)) {
                    reason = MALFORMED;
                }
            }
        }

        // Addresses that can be.
        bool is_multicast = false;
        if (reason == PASSES && is_ipv4) {
            sender_address = MAPPED(hdr.ipv4.src_addr);
            receiver_address = MAPPED(hdr.ipv4.dst_addr);
            bit<8> src = hdr.ipv4.src_addr[31:24];
            bit<8> dst = hdr.ipv4.dst_addr[31:24];
            is_multicast = dst[7:4] == 0xe || hdr.ipv4.dst_addr == 0xffffffff;
#ifndef BRIDGED
            // Addresses of one link, which routers do not forward (RFC 3927, section 2.7).
            if (hdr.ipv4.src_addr[31:16] == 0xa9fe || hdr.ipv4.dst_addr[31:16] == 0xa9fe) {
                reason = BOGUS_ADDRESS;
            }
#endif
            if (src == 127 || src >= 224 || src == 0 && !(meta.kind == KIND_DHCP && hdr.ipv4.src_addr == 0) ||
                dst == 0 || dst == 127 || dst >= 240 && !is_multicast || hdr.ipv4.src_addr == hdr.ipv4.dst_addr) {
                reason = BOGUS_ADDRESS;
            }
        } else if (reason == PASSES && is_ipv6) {
            sender_address = hdr.ipv6.src_addr;
            receiver_address = hdr.ipv6.dst_addr;
            is_multicast = receiver_address[127:120] == 0xff;
#ifndef BRIDGED
            // Addresses of one link (RFC 4291, section 2.5.6).
            if (sender_address[127:118] == 0x3fa || receiver_address[127:118] == 0x3fa) {
                reason = BOGUS_ADDRESS;
            }
#endif
            // The unspecified address, the loopback address, and those that stand for IPv4, in both forms (RFC 4291, section 2.5.5).
            bool is_discovery = meta.kind == KIND_NEIGHBOUR && (meta.type == 133 || meta.type == 135);
            if (sender_address[127:120] == 0xff || sender_address[127:32] == 96w0xffff || receiver_address[127:32] == 96w0xffff ||
                sender_address[127:32] == 0 && !(is_discovery && sender_address == 0) || receiver_address[127:32] == 0 ||
                sender_address == receiver_address) {
                reason = BOGUS_ADDRESS;
            }
        } else if (reason == PASSES && hdr.arp.isValid()) {
            sender_address = MAPPED(hdr.arp.sender_ip);
            bit<8> src = hdr.arp.sender_ip[31:24];
            if (src == 127 || src >= 224 || src == 0 && hdr.arp.sender_ip != 0) {
                reason = BOGUS_ADDRESS;
            } else if (hdr.arp.sender_mac != hdr.ethernet.src_addr) {
                reason = SPOOFED_MAC;
            }
        }
        if (reason == PASSES && meta.kind == KIND_ERROR && receiver_address != meta.src) {
            reason = ICMP_UNRELATED;
        }

        // Senders that may be here. Their requests for an address are for the controller.
        if (reason == PASSES) {
            bool is_arp = hdr.arp.isValid();
            bool assigns = meta.kind == KIND_DHCP && (meta.src_port == 67 || meta.src_port == 547);
            bool asks = meta.kind == KIND_DHCP && !assigns;
            bool unspecified = is_arp && hdr.arp.sender_ip == 0 && hdr.arp.operation == 1 ||
                               meta.kind == KIND_NEIGHBOUR && sender_address == 0;
            bool claims = role.checks_address == 1 && unspecified && meta.kind == KIND_NEIGHBOUR && meta.type == 135;
            if (hdr.ethernet.src_addr[40:40] == 1) {
                reason = SPOOFED_MAC;
            } else if (meta.kind == KIND_NEIGHBOUR && meta.type == 136) {
                if ((role.checks_address == 1 || role.router == 0 && role.transit == 0) && sender_address != meta.target) {
                    reason = SPOOFED_ADDRESS;
                }
            } else if (assigns && role.dhcp_server == 0 || meta.kind == KIND_NEIGHBOUR && role.router == 0 && (meta.type == 134 || meta.type == 137)) {
                reason = ROGUE_SERVER;
            }
            if (reason == PASSES) {
                if (asks || claims) {
                    if (role.authenticated == 0) {
                        reason = NO_CONTROLLER;
                    }
                } else if (hdr.ethernet.ether_type != ETHERTYPE_LLDP) {
                    bool bound = role.checks_mac == 0;
                    if (role.checks_address == 1) {
                        bound = address_bindings.apply().hit;
                    }
                    if (!bound) {
                        if (mac_bindings.apply().miss) {
                            reason = SPOOFED_MAC;
                        } else if (role.checks_address == 1 && !unspecified) {
                            reason = SPOOFED_ADDRESS;
                        }
                    }
#ifdef BRIDGED
                    if (role.checks_mac == 0 && role.transit == 0) {
                        mac_owners.apply();
                        if (is_elsewhere) {
                            reason = SPOOFED_MAC;
                        }
                    }
#endif
                    if (reason == PASSES && role.checks_address == 0 && role.transit == 0 && (is_arp || is_ipv4 || is_ipv6)) {
                        // Nor does it use or claim an address of another port (RFC 2827). A probe claims what it asks for (RFC 5227, RFC 4862).
                        claimed_address = sender_address;
                        if (is_arp && unspecified) {
                            claimed_address = MAPPED(hdr.arp.target_ip);
                        } else if (meta.kind == KIND_NEIGHBOUR && (meta.type == 136 || meta.type == 135 && unspecified)) {
                            claimed_address = meta.target;
                        }
                        if (sources.apply().hit) {
                            if (holder != (bit<16>)standard_metadata.ingress_port && port_sets.apply().miss) {
                                reason = SPOOFED_ADDRESS;
                            }
                        } else if (role.checks_network == 1) {
                            reason = SPOOFED_ADDRESS;
                        }
                    }
                }
            }
            if (reason == PASSES) {
#ifdef BRIDGED
                punts = meta.kind == KIND_DHCP || claims || hdr.ethernet.ether_type == ETHERTYPE_LLDP;
                floods = !punts && (is_arp || meta.kind == KIND_NEIGHBOUR) && hdr.ethernet.dst_addr[40:40] == 1;
                if (!is_arp && !is_ipv4 && !is_ipv6 && !punts) {
                    reason = ETHERTYPE;
                }
#else
                punts = hdr.ethernet.ether_type == ETHERTYPE_LLDP;
                if (!is_ipv4 && !is_ipv6 && !punts) {
                    reason = ETHERTYPE;
                }
#endif
            }
        }

        // Receivers that may be there.
        if (reason == PASSES && !punts && !floods) {
            if (is_multicast && meta.kind != KIND_NEIGHBOUR) {
                reason = MULTICAST;
#ifdef BRIDGED
            } else if (stations.apply().miss) {
                reason = NO_ROUTE;
            } else if (out_port == standard_metadata.ingress_port) {
                reason = UNKNOWN_RECEIVER;
            }
#else
            } else if ((is_ipv4 ? hdr.ipv4.ttl : hdr.ipv6.hop_limit) <= 1) {
                reason = TTL_EXPIRED;
            } else {
                if (is_ipv4) {
                    ipv4_lpm.apply();
                } else {
                    ipv6_lpm.apply();
                }
                if (!sends) {
                    reason = NO_ROUTE;
                } else if (receivers.apply().miss) {
                    reason = UNKNOWN_RECEIVER;
                }
            }
#endif
        }

#ifndef BINDINGS_ONLY
        // Flows that rules allow.
        if (reason == PASSES && (is_ipv4 || is_ipv6) && !punts && meta.kind != KIND_NEIGHBOUR && !(role.transit == 1 && to_transit == 1)) {
            rule_set.apply();
            if (settings.is_active == 0) {
                reason = NOT_READY;
            } else if (meta.kind == KIND_ICMP) {
                reason = ICMP_TYPE;
            } else {
                judge_flow.apply(meta, settings, is_ipv6, role.zone, to_zone, role.only_replies, payload,
                                 standard_metadata.ingress_global_timestamp, reason);
            }
        }
#endif

        if (reason == PASSES && punts) {
            bit<2> colour;
            controller_rate.execute_meter((bit<32>)standard_metadata.ingress_port, colour);
            if (colour == V1MODEL_METER_COLOR_RED) {
                reason = CONTROLLER_RATE;
            } else {
                to_controller.count(0);
                standard_metadata.egress_spec = CPU_PORT;
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = standard_metadata.ingress_port;
                hdr.packet_in._pad = 0;
            }
#ifdef BRIDGED
        } else if (reason == PASSES && floods) {
            standard_metadata.mcast_grp = FLOOD_GROUP;
        } else if (reason == PASSES) {
            standard_metadata.egress_spec = out_port;
#else
        } else if (reason == PASSES) {
            standard_metadata.egress_spec = out_port;
            hdr.ethernet.src_addr = next_src;
            hdr.ethernet.dst_addr = next_dst;
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
#endif
        }

        if (reason != PASSES) {
            mark_to_drop(standard_metadata);
            drops.count((bit<32>)reason);
            bit<2> colour;
            log_rate.execute_meter((bit<32>)reason, colour);
            if (colour == V1MODEL_METER_COLOR_GREEN) {
                if (is_ipv4) {
                    sender_address = MAPPED(hdr.ipv4.src_addr);
                    receiver_address = MAPPED(hdr.ipv4.dst_addr);
                } else if (is_ipv6) {
                    sender_address = hdr.ipv6.src_addr;
                    receiver_address = hdr.ipv6.dst_addr;
                }
                // allow(invalid): of a frame that is too short for Ethernet the log has zeros
                digest<dropped_t>(1, { reason, standard_metadata.ingress_port, hdr.ethernet.src_addr, hdr.ethernet.dst_addr,
                                       hdr.ethernet.ether_type, sender_address, receiver_address, meta.protocol, meta.src_port, meta.dst_port });
            }
        }
    }
}

control FirewallEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
#ifdef BRIDGED
        // A flood does not go back.
        if (standard_metadata.instance_type == 5 && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
#endif
    }
}

V1Switch(FirewallParser(), FirewallVerifyChecksum(), FirewallIngress(), FirewallEgress(), FirewallComputeChecksum(),
         FirewallDeparser()) main;
