// The source, which puts INT headers into packets, and the sink, which takes them out.

// Puts INT headers into a packet, without metadata; `sum` of what is new to the checksum. The packet stays as it is if they would
// not fit the link.
control Source(inout headers_t hdr, in metadata_t meta, in bit<32> mtu, out bit<64> sum, out bool inserted) {
    counter(1, CounterType.packets) sourced;
    counter(1, CounterType.packets) not_sourced;
    Lengthen() lengthen;

    apply {
        sum = 0;
        inserted = false;
        bit<16> bytes = INT_BYTES;
        if (meta.npt == NPT_PROTOCOL) {
            bytes = bytes + UDP_BYTES;
        }
        bit<32> ip_bytes = hdr.ipv4.isValid() ? (bit<32>)hdr.ipv4.total_len : (bit<32>)hdr.ipv6.payload_len + 40;
        // Fragments have no header of their own, or one for several packets; behind IPv6's extension headers nobody looks.
        bool capable = hdr.tcp.isValid() || hdr.udp.isValid();
        if (meta.npt == NPT_PROTOCOL && !capable) {
            capable = hdr.ipv4.isValid() ? hdr.ipv4.flags[0:0] == 0 && hdr.ipv4.frag_offset == 0
                                         : hdr.ipv6.next_header == PROTOCOL_ICMPV6;
        }
        if (!capable || ip_bytes + (bit<32>)bytes > mtu) {
            not_sourced.count(0);
        } else {
            sourced.count(0);
            inserted = true;
            hdr.int_shim.setValid();
            hdr.int_shim.type = meta.mode;
            hdr.int_shim.npt = meta.npt;
            hdr.int_shim.reserved = 0;
            hdr.int_shim.length_ = INT_WORDS;
            hdr.int_header.setValid();
            hdr.int_header.version = INT_VERSION;
            hdr.int_header.discard = meta.discard;
            hdr.int_header.hops_exceeded = 0;
            hdr.int_header.mtu_exceeded = 0;
            hdr.int_header.reserved = 0;
            hdr.int_header.hop_ml = meta.hop_ml;
            hdr.int_header.remaining_hops = meta.hops;
            hdr.int_header.instructions = meta.instructions;
            hdr.int_header.domain_id = meta.domain_id;
            hdr.int_header.ds_instructions = 0;
            hdr.int_header.ds_flags = 0;
            lengthen.apply(hdr, bytes);
            if (meta.npt == NPT_PROTOCOL) {
                // The header that was the first behind IP comes behind the INT headers. The new one has no checksum.
                bit<8> protocol = hdr.ipv4.isValid() ? hdr.ipv4.protocol : hdr.ipv6.next_header;
                bit<16> entropy;
                // allow(invalid): headers that are not there add no entropy
                hash(entropy, HashAlgorithm.crc16, 16w0xC000,
                     { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, protocol,
                       hdr.tcp.src_port, hdr.tcp.dst_port, hdr.udp.src_port, hdr.udp.dst_port }, 32w0x4000);
                bit<16> length = hdr.ipv4.isValid()
                    ? hdr.ipv4.total_len - ((bit<16>)hdr.ipv4.ihl << 2) : hdr.ipv6.payload_len;
                hdr.int_shim.original = (bit<16>)protocol;
                hdr.inner_tcp = hdr.tcp;
                hdr.inner_udp = hdr.udp;
                if (hdr.udp.isValid()) {
                    // It has become longer already.
                    hdr.inner_udp.length_ = hdr.inner_udp.length_ - bytes;
                }
                hdr.tcp.setInvalid();
                hdr.udp.setValid();
                hdr.udp.src_port = entropy;
                hdr.udp.dst_port = INDICATOR_PORT;
                hdr.udp.length_ = length;
                hdr.udp.checksum = 0;
                if (hdr.ipv4.isValid()) {
                    hdr.ipv4.protocol = PROTOCOL_UDP;
                } else {
                    hdr.ipv6.next_header = PROTOCOL_UDP;
                }
            } else {
                if (meta.npt == NPT_UDP) {
                    // allow(invalid): entries of the watchlist with this NPT are for UDP
                    hdr.int_shim.original = hdr.udp.dst_port;
                    sum = (bit<64>)(~hdr.udp.dst_port) + (bit<64>)INDICATOR_PORT;
                    hdr.udp.dst_port = INDICATOR_PORT;
                } else {
                    hdr.int_shim.original = (bit<16>)(meta.dscp ++ 2w0);
                    bit<6> marked = (meta.dscp & ~DSCP_MASK) | (DSCP_VALUE & DSCP_MASK);
                    if (hdr.ipv4.isValid()) {
                        hdr.ipv4.diffserv[7:2] = marked;
                    } else {
                        hdr.ipv6.traffic_class[7:2] = marked;
                    }
                }
                bit<32> shim = hdr.int_shim.type ++ hdr.int_shim.npt ++ 2w0 ++ INT_WORDS ++ hdr.int_shim.original;
                bit<32> first = INT_VERSION ++ meta.discard ++ 14w0 ++ meta.hop_ml ++ meta.hops;
                bit<64> longer = (bit<64>)bytes;
                if (hdr.udp.isValid()) {
                    longer = longer << 1;
                }
                sum = sum + (bit<64>)shim + (bit<64>)first + (bit<64>)(meta.instructions ++ meta.domain_id) + longer;
            }
        }
    }
}

// Takes the INT headers out of a packet, and keeps them for a report.
control Sink(inout headers_t hdr, inout metadata_t meta) {
    counter(1, CounterType.packets) sunk;
    Lengthen() lengthen;
    CorrectChecksum() correct;

    apply {
        sunk.count(0);
        meta.stripped = 1;
        hdr.kept_shim = hdr.int_shim;
        hdr.kept_header = hdr.int_header;
        hdr.kept_stack = hdr.int_stack;
        hdr.kept_udp = hdr.udp;
        // allow(invalid): without TCP it is not put back
        meta.kept_checksum = hdr.tcp.checksum;
        if (hdr.ipv4.isValid()) {
            meta.kept_length = hdr.ipv4.total_len;
            meta.kept_traffic_class = hdr.ipv4.diffserv;
        } else {
            meta.kept_length = hdr.ipv6.payload_len;
            meta.kept_traffic_class = hdr.ipv6.traffic_class;
        }
        bit<16> bytes = ((bit<16>)hdr.int_shim.length_ << 2) + 4;
        if (hdr.int_shim.npt == NPT_PROTOCOL) {
            bytes = bytes + UDP_BYTES;
        }
        lengthen.apply(hdr, ~bytes + 1);
        if (hdr.int_shim.npt == NPT_PROTOCOL) {
            hdr.udp.setInvalid();
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.protocol = hdr.int_shim.original[7:0];
            } else {
                hdr.ipv6.next_header = hdr.int_shim.original[7:0];
            }
        } else {
            // The complement of the sum of what goes.
            bit<16> removed;
            // allow(invalid): INT headers that are not there add zeros to the sum
            hash(removed, HashAlgorithm.csum16, 16w0, {
                hdr.int_shim.type, hdr.int_shim.npt, hdr.int_shim.reserved, hdr.int_shim.length_, hdr.int_shim.original,
                hdr.int_header.version, hdr.int_header.discard, hdr.int_header.hops_exceeded,
                hdr.int_header.mtu_exceeded, hdr.int_header.reserved, hdr.int_header.hop_ml,
                hdr.int_header.remaining_hops, hdr.int_header.instructions, hdr.int_header.domain_id,
                hdr.int_header.ds_instructions, hdr.int_header.ds_flags, hdr.int_stack.words }, 32w0x10000);
            bit<64> shorter = (bit<64>)(~bytes);
            if (hdr.udp.isValid()) {
                shorter = shorter << 1;
            }
            bit<64> sum = (bit<64>)removed + shorter;
            if (hdr.int_shim.npt == NPT_UDP) {
                // allow(invalid): a packet with this NPT is UDP
                sum = sum + (bit<64>)hdr.int_shim.original + (bit<64>)(~hdr.udp.dst_port);
                hdr.udp.dst_port = hdr.int_shim.original;
            } else {
                if (hdr.ipv4.isValid()) {
                    hdr.ipv4.diffserv[7:2] = hdr.int_shim.original[7:2];
                } else {
                    hdr.ipv6.traffic_class[7:2] = hdr.int_shim.original[7:2];
                }
            }
            correct.apply(hdr, sum);
        }
        hdr.int_shim.setInvalid();
        hdr.int_header.setInvalid();
        hdr.int_stack.setInvalid();
    }
}
