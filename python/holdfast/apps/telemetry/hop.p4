// One node's part of INT-MD: its metadata, pushed onto the stack, and the checksum of TCP or UDP corrected for what changed.
//
// Sums are of 32-bit words in 64 bits: modulo 2^16 - 1 they are the sums of the 16-bit words (RFC 1071, section 2).

// A node's metadata for these instructions, but for the pad and the complement; `sum` of its words.
control FillHop(inout hop_t hop, in bit<16> instructions, in hop_values_t values, out bit<64> sum) {
    apply {
        sum = 0;
        if (instructions INSTRUCTION_NODE_ID == 1) {
            hop.node_id.setValid();
            hop.node_id.value = values.node_id;
            sum = sum + (bit<64>)values.node_id;
        }
        if (instructions INSTRUCTION_PORTS == 1) {
            hop.ports.setValid();
            hop.ports.value = values.ports;
            sum = sum + (bit<64>)values.ports;
        }
        if (instructions INSTRUCTION_LATENCY == 1) {
            hop.latency.setValid();
            hop.latency.value = values.latency;
            sum = sum + (bit<64>)values.latency;
        }
        if (instructions INSTRUCTION_QUEUE == 1) {
            hop.queue.setValid();
            hop.queue.value = values.queue;
            sum = sum + (bit<64>)values.queue;
        }
        if (instructions INSTRUCTION_INGRESS_TIME == 1) {
            hop.ingress_time.setValid();
            hop.ingress_time.value = values.ingress_time;
            sum = sum + (values.ingress_time >> 32) + (values.ingress_time & 0xFFFFFFFF);
        }
        if (instructions INSTRUCTION_EGRESS_TIME == 1) {
            hop.egress_time.setValid();
            hop.egress_time.value = values.egress_time;
            sum = sum + (values.egress_time >> 32) + (values.egress_time & 0xFFFFFFFF);
        }
        if (instructions INSTRUCTION_INTERFACES == 1) {
            hop.interfaces.setValid();
            hop.interfaces.value = values.interfaces;
            sum = sum + (values.interfaces >> 32) + (values.interfaces & 0xFFFFFFFF);
        }
        if (instructions INSTRUCTION_TX_UTILISATION == 1) {
            hop.tx_utilisation.setValid();
            hop.tx_utilisation.value = values.tx_utilisation;
            sum = sum + (bit<64>)values.tx_utilisation;
        }
        // All ones are zero in the sum.
        if (instructions INSTRUCTION_BUFFER == 1) {
            hop.buffer.setValid();
            hop.buffer.value = UNKNOWN_32;
        }
    }
}

// Words that an instruction bitmap asks for, and how many of them this program knows. Bits are counted in parallel, those of instructions
// for one word, for two words and for words that are not known each in 16 bits of their own.
control CountWords(in bit<16> instructions, out bit<8> known, out bit<8> asked) {
    apply {
        bit<64> ones = (bit<64>)((instructions & 0x007E) ++ (instructions & 0x0E00) ++ (instructions & 0xF181));
        ones = ones - ((ones >> 1) & 0x5555_5555_5555_5555);
        ones = (ones & 0x3333_3333_3333_3333) + ((ones >> 2) & 0x3333_3333_3333_3333);
        ones = (ones + (ones >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
        ones = ones + (ones >> 8);
        bit<64> counted = ones + (ones >> 15);
        known = counted[7:0];
        ones = counted + (ones >> 32);
        asked = ones[7:0];
    }
}

// Adds a number, modulo 2^16, to the lengths of the packet.
control Lengthen(inout headers_t hdr, in bit<16> bytes) {
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.total_len = hdr.ipv4.total_len + bytes;
        } else {
            hdr.ipv6.payload_len = hdr.ipv6.payload_len + bytes;
        }
        if (hdr.udp.isValid()) {
            hdr.udp.length_ = hdr.udp.length_ + bytes;
        }
    }
}

// The one's complement sum of a sum's words.
control Fold(in bit<64> sum, out bit<16> folded) {
    apply {
        bit<64> a = (sum >> 32) + (sum & 0xFFFFFFFF);
        a = (a >> 16) + (a & 0xFFFF);
        a = (a >> 16) + (a & 0xFFFF);
        a = (a >> 16) + (a & 0xFFFF);
        folded = (bit<16>)a;
    }
}

// Corrects the checksum for words that sum up to `sum` (RFC 1624, equation 3). UDP's of zero is none, and stays (RFC 768).
control CorrectChecksum(inout headers_t hdr, in bit<64> sum) {
    Fold() fold;
    apply {
        bit<16> folded;
        bit<16> old_checksum = hdr.tcp.isValid() ? hdr.tcp.checksum : hdr.udp.checksum;
        fold.apply(sum + (bit<64>)(~old_checksum), folded);
        if (hdr.tcp.isValid()) {
            hdr.tcp.checksum = ~folded;
        } else if (old_checksum != 0) {
            hdr.udp.checksum = folded == 0xFFFF ? 16w0xFFFF : ~folded;
        }
    }
}

// Pushes a node's metadata, if there is room for it and hops remain. `sum` is of what the source has inserted here.
control PushHop(inout headers_t hdr, in hop_values_t values, in bit<32> mtu, in bit<64> inserted) {
    counter(1, CounterType.packets) hops_exceeded;
    counter(1, CounterType.packets) mtu_exceeded;
    // The header contradicts itself, or the stack has no room.
    counter(1, CounterType.packets) not_pushed;
    FillHop() fill;
    CountWords() count_words;
    Lengthen() lengthen;
    CorrectChecksum() correct;
    Fold() fold;

    apply {
        bit<64> sum = inserted;
        bit<8> known;
        bit<8> asked;
        bit<8> hop_ml = (bit<8>)hdr.int_header.hop_ml;
        bit<16> bytes = (bit<16>)hop_ml << 2;
        bit<32> ip_bytes = hdr.ipv4.isValid() ? (bit<32>)hdr.ipv4.total_len : (bit<32>)hdr.ipv6.payload_len + 40;
        bool neutral = false;
        count_words.apply(hdr.int_header.instructions, known, asked);
        if (hdr.int_header.remaining_hops == 0) {
            hops_exceeded.count(0);
            if (hdr.int_header.hops_exceeded == 0) {
                hdr.int_header.hops_exceeded = 1;
                sum = sum + (1 << 26);
            }
        } else if (asked > hop_ml || (bit<16>)hdr.int_shim.length_ + (bit<16>)hop_ml > 255) {
            not_pushed.count(0);
        } else if (ip_bytes + (bit<32>)bytes > mtu) {
            mtu_exceeded.count(0);
            if (hdr.int_header.mtu_exceeded == 0) {
                hdr.int_header.mtu_exceeded = 1;
                sum = sum + (1 << 25);
            }
        } else {
            bit<64> added;
            fill.apply(hdr.hop, hdr.int_header.instructions, values, added);
            bit<8> pad = hop_ml - known;
#ifdef INT_LOAD
            // With instructions that are not known besides, all of the domain's are answered with ones.
            if (hdr.int_header.domain_id == LOAD_DOMAIN && hdr.int_header.ds_instructions == LOAD_INSTRUCTION &&
                asked == known && pad == LOAD_WORDS) {
                pad = 0;
                hdr.hop.load.setValid();
                hdr.hop.load.rate = values.load[63:60];
                hdr.hop.load.time = values.load[59:36];
                hdr.hop.load.transmitted = values.load[35:16];
                hdr.hop.load.queue = values.load[15:0];
                bit<16> path = hdr.int_header.ds_flags ^ values.node_id[15:0];
                added = added + (values.load >> 32) + (values.load & 0xFFFFFFFF) +
                        (bit<64>)(~hdr.int_header.ds_flags) + (bit<64>)path;
                hdr.int_header.ds_flags = path;
            }
#endif
            if (pad != 0) {
                if (pad[4:4] == 1) {
                    hdr.hop.pad_16.setValid();
                    hdr.hop.pad_16.value = ~512w0;
                }
                if (pad[3:3] == 1) {
                    hdr.hop.pad_8.setValid();
                    hdr.hop.pad_8.value = ~256w0;
                }
                if (pad[2:2] == 1) {
                    hdr.hop.pad_4.setValid();
                    hdr.hop.pad_4.value = ~128w0;
                }
                if (pad[1:1] == 1) {
                    hdr.hop.pad_2.setValid();
                    hdr.hop.pad_2.value = ~64w0;
                }
                if (pad[0:0] == 1) {
                    hdr.hop.pad_1.setValid();
                    hdr.hop.pad_1.value = UNKNOWN_32;
                }
            }
            // The remaining hops are the last byte of a word: one less is to add the complement of one.
            hdr.int_header.remaining_hops = hdr.int_header.remaining_hops - 1;
            hdr.int_shim.length_ = hdr.int_shim.length_ + hop_ml;
            lengthen.apply(hdr, bytes);
            // UDP has its length in the header, and as TCP in the pseudo-header.
            bit<64> longer = (bit<64>)bytes;
            if (hdr.udp.isValid()) {
                longer = longer << 1;
            }
            sum = sum + added + 0xFFFFFFFE + ((bit<64>)hop_ml << 16) + longer;
            if (hdr.int_header.instructions INSTRUCTION_COMPLEMENT == 1) {
                hdr.hop.complement.setValid();
                hdr.hop.complement.value = UNKNOWN_32;
                if (!hdr.udp.isValid() || hdr.udp.checksum != 0) {
                    bit<16> folded;
                    fold.apply(sum, folded);
                    hdr.hop.complement.value = (bit<32>)(~folded);
                    neutral = true;
                }
            }
        }
        if (!neutral && sum != 0) {
            correct.apply(hdr, sum);
        }
    }
}
