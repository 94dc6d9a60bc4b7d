// INT as in Claeson and Kruse, "High-Speed, Low-Latency, and Secure Networking with P4" (Chalmers, 2021), section 3.3, on the same router:
// a header of 3 bytes behind UDP, 12 bytes per hop, and a report that goes back to the sender.
//
// Every UDP packet over IPv4 gets it. The source sends it to port 1337 and keeps the port in the header. Nodes put their data in front of that of
// earlier ones. The sink restores the packet, and sends what it took out, with its own data, to the sender's port 1338.
//
// Points that the thesis leaves open: packets that would not fit the link stay as they are; the source sets UDP's checksum to zero, which
// is none (RFC 768), and the sink leaves it so; a report is about the sink's port to the receiver, not about the one back.

#include <core.p4>
#include <v1model.p4>
#include "int.p4"
#include "../domain.p4"
#include "../discovery.p4"

#define PORTS 512

const bit<16> DATA_PORT   = 1337;
const bit<16> REPORT_PORT = 1338;

// Bytes of the header and of a hop.
const bit<16> HEADER_BYTES = 3;
const bit<16> HOP_BYTES    = 12;
// As many as a stack has room for.
const bit<8>  MAX_HOPS     = 84;

// The sessions of reports: the one of a port sends out of that port.
const bit<32> FIRST_SESSION = 1000;

header thesis_header_t {
    bit<8>  hops;
    bit<16> udp_port;
}

header thesis_hop_t {
    bit<32> timestamp;  // egress, microseconds
    bit<32> tx_bytes;   // that the egress port has sent before this packet
    bit<16> queue;      // packets
    bit<8>  switch_id;
    bit<8>  port;       // egress
}

struct headers_t {
    packet_out_t    packet_out;
    packet_in_t     packet_in;
    ethernet_t      ethernet;
    ipv4_t          ipv4;
    ipv4_options_t  ipv4_options;
    ipv6_t          ipv6;
    udp_t           udp;
    thesis_header_t int_header;
    thesis_hop_t    hop;
    int_stack_t     int_stack;
    // The headers that the sink has removed, for the clone.
    thesis_header_t kept_header;
    thesis_hop_t    kept_hop;
    int_stack_t     kept_stack;
}

struct metadata_t {
    bit<8> drop_reason;
    @field_list(1)
    bit<1> report;
}

#include "routing.p4"

parser ThesisParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default:        accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl) {
            5:       parse_ipv4_payload;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, (bit<32>)(hdr.ipv4.ihl - 5) * 32);
        transition parse_ipv4_payload;
    }

    state parse_ipv4_payload {
        transition select(hdr.ipv4.flags[0:0], hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, 0, PROTOCOL_UDP): parse_udp;
            default:              accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            DATA_PORT: parse_int;
            default:   accept;
        }
    }

    state parse_int {
        packet.extract(hdr.int_header);
        verify(hdr.int_header.hops <= MAX_HOPS, error.ParserInvalidArgument);
        packet.extract(hdr.int_stack, (bit<32>)hdr.int_header.hops * 96);
        transition accept;
    }
}

control ThesisVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUMS(verify_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

control TelemetryIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) malformed;
    Routing() routing;
    LeadsToDomain() leads_to_domain;
    CountRefused() count_refused;
    MeterDiscovery() meter_discovery;

    apply {
        // Both ports belong to the switches: hosts have neither data nor reports to send.
        bool is_foreign = false;
        if (hdr.udp.isValid() && (hdr.udp.dst_port == DATA_PORT || hdr.udp.dst_port == REPORT_PORT)) {
            bool leads;
            leads_to_domain.apply(standard_metadata.ingress_port, leads);
            is_foreign = !leads;
        }
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (is_foreign) {
            count_refused.apply(standard_metadata.ingress_port);
            mark_to_drop(standard_metadata);
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed.count(0);
            mark_to_drop(standard_metadata);
        } else if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            routing.apply(hdr, standard_metadata, meta.drop_reason);
        } else if (hdr.ethernet.ether_type == ETHERTYPE_LLDP) {
            bool is_within;
            meter_discovery.apply(standard_metadata.ingress_port, is_within);
            if (is_within) {
                standard_metadata.egress_spec = CPU_PORT;
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = standard_metadata.ingress_port;
                hdr.packet_in._pad = 0;
            } else {
                mark_to_drop(standard_metadata);
            }
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control TelemetryEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Bytes that each port has sent.
    register<bit<32>>(PORTS) tx_bytes;
    counter(1, CounterType.packets) reports;
    counter(1, CounterType.packets) mtu_exceeded;
    bit<8> switch_id = 0;
    bit<32> mtu = 0xFFFFFFFF;
    bit<1> edge = 0;

    action identify(bit<8> id) {
        switch_id = id;
    }

    table node {
        key = {}
        actions = {
            identify;
            NoAction;
        }
        default_action = NoAction();
    }

    // `is_edge`: a host is behind the port.
    action configure(bit<32> link_mtu, bit<1> is_edge) {
        mtu = link_mtu;
        edge = is_edge;
    }

    table port_settings {
        key = {
            standard_metadata.egress_port: exact;
        }
        actions = {
            configure;
            NoAction;
        }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        node.apply();
        if (meta.report == 1) {
            reports.count(0);
            hdr.int_header = hdr.kept_header;
            hdr.hop = hdr.kept_hop;
            hdr.int_stack = hdr.kept_stack;
            mac_t mac = hdr.ethernet.src_addr;
            hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
            hdr.ethernet.dst_addr = mac;
            ipv4_address_t address = hdr.ipv4.src_addr;
            hdr.ipv4.src_addr = hdr.ipv4.dst_addr;
            hdr.ipv4.dst_addr = address;
            hdr.ipv4.ttl = 64;
            hdr.udp.dst_port = REPORT_PORT;
            hdr.udp.checksum = 0;
            hdr.udp.length_ = 8 + HEADER_BYTES + (bit<16>)hdr.int_header.hops * HOP_BYTES;
            hdr.ipv4.total_len = ((bit<16>)hdr.ipv4.ihl << 2) + hdr.udp.length_;
            truncate((bit<32>)hdr.ipv4.total_len + 14);
        } else if (standard_metadata.egress_port != CPU_PORT) {
            port_settings.apply();
            bit<32> port = (bit<32>)standard_metadata.egress_port;
            bit<32> sent;
            tx_bytes.read(sent, port);
            bit<32> length = standard_metadata.packet_length;
            bit<16> grown = HOP_BYTES;
            if (!hdr.int_header.isValid()) {
                grown = grown + HEADER_BYTES;
            }
            if (edge == 1) {
                if (hdr.int_header.isValid()) {
                    bit<16> removed = HEADER_BYTES + (bit<16>)hdr.int_header.hops * HOP_BYTES;
                    hdr.kept_header = hdr.int_header;
                    hdr.kept_header.hops = hdr.int_header.hops + 1;
                    hdr.kept_stack = hdr.int_stack;
                    hdr.kept_hop.setValid();
                    hdr.kept_hop.timestamp = (bit<32>)standard_metadata.egress_global_timestamp;
                    hdr.kept_hop.tx_bytes = sent;
                    hdr.kept_hop.queue = (bit<16>)standard_metadata.enq_qdepth;
                    hdr.kept_hop.switch_id = switch_id;
                    hdr.kept_hop.port = (bit<8>)standard_metadata.egress_port;
                    hdr.udp.dst_port = hdr.int_header.udp_port;
                    hdr.udp.length_ = hdr.udp.length_ - removed;
                    hdr.ipv4.total_len = hdr.ipv4.total_len - removed;
                    length = length - (bit<32>)removed;
                    hdr.int_header.setInvalid();
                    hdr.int_stack.setInvalid();
                    meta.report = 1;
                    clone_preserving_field_list(CloneType.E2E,
                                                FIRST_SESSION + (bit<32>)standard_metadata.ingress_port, 1);
                }
            } else if (hdr.udp.isValid() && hdr.udp.dst_port != REPORT_PORT) {
                if ((bit<32>)hdr.ipv4.total_len + (bit<32>)grown > mtu || hdr.int_header.isValid() && hdr.int_header.hops == MAX_HOPS) {
                    mtu_exceeded.count(0);
                } else {
                    if (!hdr.int_header.isValid()) {
                        hdr.int_header.setValid();
                        hdr.int_header.hops = 0;
                        hdr.int_header.udp_port = hdr.udp.dst_port;
                        hdr.udp.dst_port = DATA_PORT;
                        hdr.udp.checksum = 0;
                    }
                    hdr.int_header.hops = hdr.int_header.hops + 1;
                    hdr.udp.length_ = hdr.udp.length_ + grown;
                    hdr.ipv4.total_len = hdr.ipv4.total_len + grown;
                    length = length + (bit<32>)grown;
                    hdr.hop.setValid();
                    hdr.hop.timestamp = (bit<32>)standard_metadata.egress_global_timestamp;
                    hdr.hop.tx_bytes = sent;
                    hdr.hop.queue = (bit<16>)standard_metadata.enq_qdepth;
                    hdr.hop.switch_id = switch_id;
                    hdr.hop.port = (bit<8>)standard_metadata.egress_port;
                }
            }
            tx_bytes.write(port, sent + length);
        }
    }
}

control ThesisComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUMS(update_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

control ThesisDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.int_header);
        packet.emit(hdr.hop);
        packet.emit(hdr.int_stack);
    }
}

V1Switch(ThesisParser(), ThesisVerifyChecksum(), TelemetryIngress(), TelemetryEgress(), ThesisComputeChecksum(),
         ThesisDeparser()) main;
