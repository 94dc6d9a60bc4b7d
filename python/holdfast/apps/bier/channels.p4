// The edge of the BIER domain: which bits a channel's packets get (at the BFIR), and which ports a payload is delivered to (at the BFER). A
// channel is (S,G), or (*,G) for all sources without an entry of their own. The controller knows the members.

#ifndef HOLDFAST_BIER_CHANNELS_P4
#define HOLDFAST_BIER_CHANNELS_P4

// The destinations of a channel's packets: per set identifier a BIFT-id and a BitString. Those of the first are in the channel's entry;
// those of the others follow each other in `further_sets`.
control Impose(in headers_t hdr, inout metadata_t meta, in bool is_ipv6, out bool is_channel, out bit<16> mtu) {
    action impose(bit<16> bfir_id, bit<20> bift_id, bit_string_t bit_string, bit<16> next_set, bit<16> mtu_bytes) {
        meta.bfir_id = bfir_id;
        meta.bift_id = bift_id;
        meta.bits = bit_string;
        meta.next_set = next_set;
        mtu = mtu_bytes;
    }

    // The channel has no receivers in the domain.
    action discard() {
        meta.bits = 0;
    }

    table channels {
        key = {
            hdr.ipv4.src_addr: exact;
            hdr.ipv4.dst_addr: exact;
        }
        actions = { impose; discard; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    table channels_any_source {
        key = {
            hdr.ipv4.dst_addr: exact;
        }
        actions = { impose; discard; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    table channels_v6 {
        key = {
            hdr.ipv6.src_addr: exact;
            hdr.ipv6.dst_addr: exact;
        }
        actions = { impose; discard; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    table channels_any_source_v6 {
        key = {
            hdr.ipv6.dst_addr: exact;
        }
        actions = { impose; discard; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    action impose_further(bit<20> bift_id, bit_string_t bit_string, bit<16> next_set) {
        meta.bift_id = bift_id;
        meta.bits = bit_string;
        meta.next_set = next_set;
    }

    table further_sets {
        key = {
            meta.next_set: exact @name("set");
        }
        actions = { impose_further; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    apply {
        is_channel = true;
        mtu = 0xffff;
        if (meta.again == 1) {
            if (!further_sets.apply().hit) {
                meta.bits = 0;
                meta.next_set = 0;
            }
        } else if (is_ipv6) {
            if (!channels_v6.apply().hit) {
                is_channel = channels_any_source_v6.apply().hit;
            }
        } else if (!channels.apply().hit) {
            is_channel = channels_any_source.apply().hit;
        }
    }
}

// The group of ports that have joined the channel of a payload; group 0 if there is none.
control Receivers(in headers_t hdr, inout bit<16> group, out bool is_known) {
    action deliver(bit<16> m_grp) {
        group = m_grp;
    }

    // Known, and wanted by nobody: a source that all have filtered out.
    action discard() {
        group = 0;
    }

    table receivers {
        key = {
            hdr.ipv4.src_addr: exact;
            hdr.ipv4.dst_addr: exact;
        }
        actions = { deliver; discard; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    table receivers_any_source {
        key = {
            hdr.ipv4.dst_addr: exact;
        }
        actions = { deliver; discard; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    table receivers_v6 {
        key = {
            hdr.ipv6.src_addr: exact;
            hdr.ipv6.dst_addr: exact;
        }
        actions = { deliver; discard; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    table receivers_any_source_v6 {
        key = {
            hdr.ipv6.dst_addr: exact;
        }
        actions = { deliver; discard; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    apply {
        is_known = true;
        if (hdr.ipv6.isValid()) {
            if (!receivers_v6.apply().hit) {
                is_known = receivers_any_source_v6.apply().hit;
            }
        } else if (hdr.ipv4.isValid()) {
            if (!receivers.apply().hit) {
                is_known = receivers_any_source.apply().hit;
            }
        } else {
            is_known = false;
        }
    }
}

#endif
