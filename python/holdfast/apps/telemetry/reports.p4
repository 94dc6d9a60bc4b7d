// Telemetry reports v2.0: which packets are reported, and a report made of a clone.
//
// A report holds the headers of its packet up to TCP or UDP, with the INT headers that the packet had, but no payload.

const bit<32> REPORT_SESSION = 1;
const bit<32> FLOWS = 65536;

// Whether a flow takes another way through this node than its last packet, or its latency moved to another step of 2^shift microseconds.
control FlowChange(in headers_t hdr, in standard_metadata_t standard_metadata, in bit<32> latency,
                   in bit<5> shift, out bool changed) {
    // By flow: a signature, ports, remaining hops, TTL, latency.
    register<bit<64>>(FLOWS) last_seen;

    apply {
        bit<32> index;
        bit<16> signature;
        bit<8> protocol = hdr.ipv4.isValid() ? hdr.ipv4.protocol : hdr.ipv6.next_header;
        // allow(invalid): headers that are not there add zeros; leftovers would only look like a change
        hash(index, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, protocol,
               hdr.tcp.src_port, hdr.tcp.dst_port, hdr.udp.src_port, hdr.udp.dst_port,
               hdr.inner_tcp.src_port, hdr.inner_tcp.dst_port, hdr.inner_udp.src_port, hdr.inner_udp.dst_port }, FLOWS);
        // allow(invalid): likewise
        hash(signature, HashAlgorithm.crc16, 16w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, protocol,
               hdr.tcp.src_port, hdr.tcp.dst_port, hdr.udp.src_port, hdr.udp.dst_port,
               hdr.inner_tcp.src_port, hdr.inner_tcp.dst_port, hdr.inner_udp.src_port, hdr.inner_udp.dst_port },
             32w0x10000);
        bit<8> ttl = hdr.ipv4.isValid() ? hdr.ipv4.ttl : hdr.ipv6.hop_limit;
        bit<8> hops = hdr.kept_header.isValid() ? hdr.kept_header.remaining_hops : 8w0;
        bit<32> step = latency >> (bit<8>)shift;
        bit<64> now = signature ++ standard_metadata.ingress_port ++ standard_metadata.egress_port ++ hops ++ ttl ++
                      step[12:0] ++ 1w1;
        bit<64> before;
        last_seen.read(before, index);
        last_seen.write(index, now);
        changed = now != before;
    }
}

// Makes the report of a clone. `node_id` and the reporter's addresses are set.
control MakeReport(inout headers_t hdr, inout metadata_t meta, in reporter_t reporter,
                   inout standard_metadata_t standard_metadata) {
    register<bit<32>>(1) sequence;
    counter(1, CounterType.packets) reports;
    FillHop() fill;
    CountWords() count_words;

    apply {
        reports.count(0);
        if (meta.stripped == 1) {
            hdr.int_shim = hdr.kept_shim;
            hdr.int_header = hdr.kept_header;
            hdr.int_stack = hdr.kept_stack;
            hdr.udp = hdr.kept_udp;
            hdr.tcp.checksum = meta.kept_checksum;
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.total_len = meta.kept_length;
                hdr.ipv4.diffserv = meta.kept_traffic_class;
                if (hdr.int_shim.npt == NPT_PROTOCOL) {
                    hdr.ipv4.protocol = PROTOCOL_UDP;
                }
            } else {
                hdr.ipv6.payload_len = meta.kept_length;
                hdr.ipv6.traffic_class = meta.kept_traffic_class;
                if (hdr.int_shim.npt == NPT_PROTOCOL) {
                    hdr.ipv6.next_header = PROTOCOL_UDP;
                }
            }
        }

        hop_values_t values;
        values.node_id = 0;
        values.ports = meta.report_ports;
        values.latency = meta.report_latency;
        values.queue = meta.report_queue;
        values.ingress_time = meta.report_ingress_time;
        values.egress_time = meta.report_egress_time;
        values.interfaces = meta.report_interfaces;
        values.tx_utilisation = meta.report_tx_utilisation;
        bit<64> sum;
        bit<8> words;
        bit<8> asked;
        fill.apply(hdr.report_hop, meta.report_instructions, values, sum);
        count_words.apply(meta.report_instructions, words, asked);
        if (meta.reported_drop != DROP_NONE) {
            hdr.report_drop.setValid();
            hdr.report_drop.value = 8w0xFF ++ meta.reported_drop ++ 16w0;
            words = words + 1;
        }

        // Words of the packet's headers.
        bit<16> inner = hdr.ipv4.isValid() ? (bit<16>)hdr.ipv4.ihl : 16w10;
        if (hdr.tcp.isValid()) {
            inner = inner + 5;
        }
        if (hdr.udp.isValid()) {
            inner = inner + 2;
        }
        if (hdr.int_shim.isValid()) {
            inner = inner + 1 + (bit<16>)hdr.int_shim.length_;
        }
        if (hdr.inner_tcp.isValid()) {
            inner = inner + 5;
        }
        if (hdr.inner_udp.isValid()) {
            inner = inner + 2;
        }
        bit<16> length = inner + (bit<16>)words + 2;

        bit<32> number;
        sequence.read(number, 0);
        sequence.write(0, number + 1);
        hdr.report.setValid();
        hdr.report.version = 2;
        hdr.report.hw_id = reporter.hw_id;
        hdr.report.sequence = number[21:0];
        hdr.report.node_id = meta.values.node_id;
        hdr.report.rep_type = 1;
        hdr.report.in_type = hdr.ipv4.isValid() ? 4w4 : 4w5;
        hdr.report.length_ = length >= 0xFF ? 8w0xFF : (bit<8>)length;
        hdr.report.md_length = words;
        hdr.report.dropped = meta.reported_drop != DROP_NONE ? 1w1 : 1w0;
        hdr.report.congested = meta.congested;
        hdr.report.tracked = meta.tracked;
        hdr.report.intermediate = 0;
        hdr.report.reserved = 0;
        hdr.report.md_bits = meta.report_instructions;
        if (meta.reported_drop != DROP_NONE) {
            hdr.report.md_bits = hdr.report.md_bits | 1;
        }
        hdr.report.domain_id = meta.report_domain_id;
        hdr.report.ds_md_bits = 0;
        hdr.report.ds_md_status = 0;

        hdr.ethernet.src_addr = reporter.src_mac;
        hdr.ethernet.dst_addr = reporter.dst_mac;
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.report_udp.setValid();
        hdr.report_udp.src_port = reporter.src_port;
        hdr.report_udp.dst_port = reporter.dst_port;
        hdr.report_udp.length_ = (length << 2) + 8 + 12;
        hdr.report_udp.checksum = 0;
        hdr.report_ipv4.setValid();
        hdr.report_ipv4.version = 4;
        hdr.report_ipv4.ihl = 5;
        hdr.report_ipv4.diffserv = 0;
        hdr.report_ipv4.total_len = hdr.report_udp.length_ + 20;
        hdr.report_ipv4.identification = 0;
        hdr.report_ipv4.flags = 2;
        hdr.report_ipv4.frag_offset = 0;
        hdr.report_ipv4.ttl = 64;
        hdr.report_ipv4.protocol = PROTOCOL_UDP;
        hdr.report_ipv4.src_addr = reporter.src_addr;
        hdr.report_ipv4.dst_addr = reporter.dst_addr;
        truncate((bit<32>)hdr.report_ipv4.total_len + 14);
    }
}
