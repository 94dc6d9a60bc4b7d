// Frame replication and elimination on layer 2 (IEEE 802.1CB): a bridge that numbers streams with R-TAGs, sends copies, and passes one
// copy of each. Which copies pass is acceptance.p4's business, as in protect.p4.
//
// A stream is a destination address and a VLAN (null stream identification, 6.4). Packets of no stream are bridged by the same two.
// Nothing is learnt and nothing flooded: a network with several ways has no other protection against loops than its tables.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "../domain.p4"

// Of R-TAGs.
#ifndef SN_BITS
#define SN_BITS 16
#endif

#include "acceptance.p4"

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_RTAG = 0xf1c1;

const bit<32> RTAG_BYTES = 6;

header vlan_t {
    bit<3>  priority;
    bit<1>  drop_eligible;
    bit<12> vid;
    bit<16> ether_type;
}

// Clause 7.8.
header rtag_t {
    bit<16> reserved;  // sent as zero, not looked at
    bit<16> sequence_number;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
    rtag_t     rtag;
}

struct metadata_t {
    bit<12> vid;  // 0: no tag, or one with a priority only
}

parser RtagParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_RTAG: parse_rtag;
            default:        accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        meta.vid = hdr.vlan.vid;
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_RTAG: parse_rtag;
            default:        accept;
        }
    }

    state parse_rtag {
        packet.extract(hdr.rtag);
        transition accept;
    }
}

control RtagVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// Sequence generation (7.4.1), and the splitting of the stream: a group sends the copies.
control Split(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata, out bool splits) {
    // The number of the next frame (GenSeqNum).
    register<sn_t>(CONNECTIONS) next_sn;
    counter(CONNECTIONS, CounterType.packets_and_bytes) numbered;
    counter(CONNECTIONS, CounterType.packets) mtu_exceeded;

    bit<32> stream = 0;
    bit<16> mtu = 0;
    bit<16> multicast_group = 0;

    // mtu: bytes of the largest frame that all ways carry, with its R-TAG and without its check sequence.
    action split(bit<32> index, bit<16> m_grp, bit<16> max_frame_bytes) {
        stream = index;
        multicast_group = m_grp;
        mtu = max_frame_bytes;
    }

    table split_streams {
        key = {
            hdr.ethernet.dst_addr: exact;
            meta.vid:              exact;
        }
        actions = {
            split;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    apply {
        splits = split_streams.apply().hit;
        if (splits) {
            if (standard_metadata.packet_length + RTAG_BYTES > (bit<32>)mtu) {
                mtu_exceeded.count(stream);
                mark_to_drop(standard_metadata);
            } else {
                sn_t sn;
                next_sn.read(sn, stream);
                next_sn.write(stream, sn + 1);
                numbered.count(stream);
                hdr.rtag.setValid();
                hdr.rtag.reserved = 0;
                hdr.rtag.sequence_number = (bit<16>)sn;
                if (hdr.vlan.isValid()) {
                    hdr.rtag.ether_type = hdr.vlan.ether_type;
                    hdr.vlan.ether_type = ETHERTYPE_RTAG;
                } else {
                    hdr.rtag.ether_type = hdr.ethernet.ether_type;
                    hdr.ethernet.ether_type = ETHERTYPE_RTAG;
                }
                standard_metadata.mcast_grp = multicast_group;
            }
        }
    }
}

// Passes one copy of each number of the streams that are eliminated here.
control Eliminate(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Acceptance() acceptance;
    acceptance_t by = { 0, ALGORITHM_PAPER_WINDOW, 0, 0, 0 };
    bit<1> untags = 0;

    // untag: 1 at a stream's end, 0 where it is only cleaned of copies on its way.
    action select_window(bit<32> index, bit<1> untag, bit<32> reset_timeout_us) {
        by.connection = index;
        by.algorithm = ALGORITHM_WINDOW;
        by.reset_timeout_us = reset_timeout_us;
        untags = untag;
    }

    action select_vector(bit<32> index, bit<1> untag, bit<8> history_length, bit<32> reset_timeout_us) {
        by.connection = index;
        by.algorithm = ALGORITHM_VECTOR;
        by.history_length = history_length > HISTORY_BITS ? (bit<8>)HISTORY_BITS : history_length;
        by.reset_timeout_us = reset_timeout_us;
        untags = untag;
    }

    action select_match(bit<32> index, bit<1> untag, bit<32> reset_timeout_us) {
        by.connection = index;
        by.algorithm = ALGORITHM_MATCH;
        by.reset_timeout_us = reset_timeout_us;
        untags = untag;
    }

    table eliminated_streams {
        key = {
            hdr.ethernet.dst_addr: exact;
            meta.vid:              exact;
        }
        actions = {
            select_window;
            select_vector;
            select_match;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    action end_path(path_t number) {
        by.path = number;
    }

    // Which way a copy came, by the port: for the counters only.
    table ports {
        key = {
            standard_metadata.ingress_port: exact;
        }
        actions = {
            end_path;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 512;
    }

    apply {
        if (eliminated_streams.apply().hit) {
            ports.apply();
            bool passes;
            acceptance.apply(by, (sn_t)hdr.rtag.sequence_number, standard_metadata.ingress_global_timestamp, passes);
            if (!passes) {
                mark_to_drop(standard_metadata);
                exit;
            }
            if (untags == 1) {
                if (hdr.vlan.isValid()) {
                    hdr.vlan.ether_type = hdr.rtag.ether_type;
                } else {
                    hdr.ethernet.ether_type = hdr.rtag.ether_type;
                }
                hdr.rtag.setInvalid();
            }
        }
    }
}

control RtagIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) malformed;
    direct_counter(CounterType.packets_and_bytes) bridged;

    LeadsToDomain() leads_to_domain;
    CountRefused() count_refused;
    Split() split;
    Eliminate() eliminate;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action replicate(bit<16> m_grp) {
        standard_metadata.mcast_grp = m_grp;
    }

    table stations {
        key = {
            hdr.ethernet.dst_addr: exact;
            meta.vid:              exact;
        }
        actions = {
            forward;
            replicate;
            drop;
        }
        default_action = drop();
        counters = bridged;
        size = 65536;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            malformed.count(0);
            mark_to_drop(standard_metadata);
        } else {
            bool splits = false;
            if (hdr.rtag.isValid()) {
                // Numbers are given by bridges of the domain. (A station that numbers its frames itself is a part of it.)
                bool leads;
                leads_to_domain.apply(standard_metadata.ingress_port, leads);
                if (!leads) {
                    count_refused.apply(standard_metadata.ingress_port);
                    drop();
                    exit;
                }
                eliminate.apply(hdr, meta, standard_metadata);
            } else {
                split.apply(hdr, meta, standard_metadata, splits);
            }
            if (!splits) {
                stations.apply();
            }
        }
    }
}

control RtagEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        // A frame does not leave by the port that it came in by.
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

control RtagComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RtagDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.rtag);
    }
}

V1Switch(RtagParser(), RtagVerifyChecksum(), RtagIngress(), RtagEgress(), RtagComputeChecksum(), RtagDeparser()) main;
