// 1+1 protection of BIER (-D ONE_PLUS_ONE): the BFIR numbers the packets of a protected channel and sends each in two sub-domains, whose BIFTs
// follow independent trees; a BFER delivers the first copy of each number. Included by bier.p4.
//
// The number is in an R-TAG (IEEE 802.1CB, 7.8), and the payload of the BIER packet is the Ethernet frame that came to the BFIR, with the tag
// in it (next protocol 3 of RFC 8296): nothing in it is private. Numbers belong to a channel at its BFIR. Which copies pass is
// ../protect/acceptance.p4's business; sub-domain 0 is its path 0, and sub-domain 1 its path 1.

#ifndef HOLDFAST_BIER_ONE_PLUS_ONE_P4
#define HOLDFAST_BIER_ONE_PLUS_ONE_P4

// Of R-TAGs.
#define SN_BITS 16

#ifndef HISTORY_BITS
#define HISTORY_BITS 128
#endif

// Channels that a switch numbers as their BFIR, and channels that it eliminates as a BFER.
#ifndef CONNECTIONS
#define CONNECTIONS 1024
#endif

#include "../protect/acceptance.p4"

// Numbers packets of protected channels that fit their way with the tag, once: a further set of a packet has the same number.
control NumberStream(in headers_t hdr, inout metadata_t meta, in bool is_ipv6, in bit<32> bier_bytes, in bit<16> mtu,
                     inout bool fits) {
    // The number of the next packet (GenSeqNum, 7.4.1.3).
    register<sn_t>(CONNECTIONS) next_sn;
    counter(CONNECTIONS, CounterType.packets_and_bytes) numbered;

    bit<32> stream = 0;

    action number(bit<32> index) {
        stream = index;
    }

    table numbered_channels {
        key = {
            hdr.ipv4.src_addr: exact;
            hdr.ipv4.dst_addr: exact;
        }
        actions = { number; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    table numbered_channels_v6 {
        key = {
            hdr.ipv6.src_addr: exact;
            hdr.ipv6.dst_addr: exact;
        }
        actions = { number; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    apply {
        if (meta.again == 0) {
            bool is_protected;
            if (is_ipv6) {
                is_protected = numbered_channels_v6.apply().hit;
            } else {
                is_protected = numbered_channels.apply().hit;
            }
            if (is_protected) {
                meta.tagged = 1;
                fits = bier_bytes + TAG_BYTES <= (bit<32>)mtu;
                if (fits) {
                    sn_t sn;
                    next_sn.read(sn, stream);
                    next_sn.write(stream, sn + 1);
                    numbered.count(stream);
                    meta.sequence = sn;
                }
            }
        }
    }
}

// Passes the first copy of each number of the channels that are known here, and all packets of others.
control EliminateCopies(in headers_t hdr, in bit<48> now, out bool passes) {
    Acceptance() acceptance;
    acceptance_t by = { 0, ALGORITHM_VECTOR, 0, 0, 0 };

    action select_vector(bit<32> index, bit<8> history_length, bit<32> reset_timeout_us) {
        by.connection = index;
        by.history_length = history_length > HISTORY_BITS ? (bit<8>)HISTORY_BITS : history_length;
        by.reset_timeout_us = reset_timeout_us;
    }

    table eliminated_channels {
        key = {
            hdr.bier.bfir_id:  exact;
            hdr.ipv4.src_addr: exact;
            hdr.ipv4.dst_addr: exact;
        }
        actions = { select_vector; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    table eliminated_channels_v6 {
        key = {
            hdr.bier.bfir_id:  exact;
            hdr.ipv6.src_addr: exact;
            hdr.ipv6.dst_addr: exact;
        }
        actions = { select_vector; @defaultonly NoAction; }
        const default_action = NoAction();
        size = CONNECTIONS;
    }

    apply {
        bool is_known;
        if (hdr.ipv6.isValid()) {
            is_known = eliminated_channels_v6.apply().hit;
        } else {
            // allow(invalid): a packet that leaves BIER is of IP
            is_known = eliminated_channels.apply().hit;
        }
        passes = true;
        if (is_known) {
            // BIFT-ids are packed: BSL 4, sub-domain 8, set identifier 8.
            by.path = hdr.bier.bift_id[9:8];
            acceptance.apply(by, (sn_t)hdr.rtag.sequence_number, now, passes);
        }
    }
}

#endif
