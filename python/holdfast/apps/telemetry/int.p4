// Headers of In-band Network Telemetry v2.1 (P4.org, 2020-11-11) and Telemetry Report v2.0 (2020-10-08), and TCP and UDP in front of them.
//
// The indicator of INT is the DSCP, or with INT_UDP_PORT a destination port of UDP; a domain uses one of them.

#ifndef HOLDFAST_INT_P4
#define HOLDFAST_INT_P4

#include "../headers.p4"

// The part of the DSCP that marks packets with INT, and its value there.
#ifndef INT_DSCP
#define INT_DSCP 0x17
#endif
#ifndef INT_DSCP_MASK
#define INT_DSCP_MASK 0x3F
#endif

const bit<6> DSCP_VALUE = INT_DSCP;
const bit<6> DSCP_MASK  = INT_DSCP_MASK;

const bit<4> INT_VERSION = 2;

// Types of INT headers; 2 is for the sink alone and has no format yet. XD is no type: it adds nothing to packets.
const bit<4> INT_MD = 1;
const bit<4> INT_MX = 3;
const bit<4> INT_XD = 15;

// The data behind the INT headers (NPT of the shim): not said; the payload of the UDP header in front; another header, of a given protocol.
const bit<2> NPT_NONE     = 0;
const bit<2> NPT_UDP      = 1;
const bit<2> NPT_PROTOCOL = 2;

// Lengths in bytes: of the shim and the INT header; of an INT header alone, in words.
const bit<16> INT_BYTES = 16;
const bit<8>  INT_WORDS = 3;
const bit<16> UDP_BYTES = 8;

#ifdef INT_LOAD
// The domain with an instruction for the load of the output port, its first domain-specific one. The flags are the path: the exclusive or of
// node ids.
const bit<16> LOAD_DOMAIN = 0x4850;
const bit<16> LOAD_INSTRUCTION = 0x8000;
const bit<8>  LOAD_WORDS = 2;
// Ethernet's preamble, frame check sequence and gap: bytes of the link's rate that no packet length counts.
const bit<32> GAP_BYTES = 24;
#endif

// Values of what is not known here.
const bit<16> UNKNOWN_16 = 0xFFFF;
const bit<32> UNKNOWN_32 = 0xFFFFFFFF;

const bit<8> PROTOCOL_ICMPV6 = 58;

// RFC 9293, section 3.1, without the options.
header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence;
    bit<32> acknowledgment;
    bit<4>  data_offset;
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

// RFC 768.
header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length_;
    bit<16> checksum;
}

// The shim for TCP and UDP.
header int_shim_t {
    bit<4>  type;
    bit<2>  npt;
    bit<2>  reserved;
    bit<8>  length_;   // words behind the shim
    bit<16> original;  // DSCP (bits 7..2), UDP port, or protocol, by NPT
}

// The INT-MD header. That of INT-MX is the same, with the discard flag alone in its first word.
header int_header_t {
    bit<4>  version;
    bit<1>  discard;
    bit<1>  hops_exceeded;
    bit<1>  mtu_exceeded;
    bit<12> reserved;
    bit<5>  hop_ml;
    bit<8>  remaining_hops;
    bit<16> instructions;
    bit<16> domain_id;
    bit<16> ds_instructions;
    bit<16> ds_flags;
}

// The metadata that earlier nodes have pushed.
header int_stack_t {
    varbit<8064> words;
}

header word_t {
    bit<32> value;
}

header double_word_t {
    bit<64> value;
}

header pad_4_t {
    bit<128> value;
}

header pad_8_t {
    bit<256> value;
}

header pad_16_t {
    bit<512> value;
}

#ifdef INT_LOAD
// The load of an output port when the packet left it, with the fields of HPCC (Li and others, SIGCOMM 2019).
header load_t {
    bit<4>  rate;         // a code; 0 and 15 are unknown
    bit<24> time;         // microseconds
    bit<20> transmitted;  // 128 bytes
    bit<16> queue;        // 64 bytes
}
#endif

// A node's own metadata, in the order of the instruction bits. Reserved and domain-specific instructions are answered with ones (pad).
struct hop_t {
    word_t        node_id;         // bit 0
    word_t        ports;           // 1: ingress 16, egress 16
    word_t        latency;         // 2: microseconds
    word_t        queue;           // 3: queue 8, packets 24
    double_word_t ingress_time;    // 4: microseconds
    double_word_t egress_time;     // 5: microseconds
    double_word_t interfaces;      // 6: ingress 32, egress 32
    word_t        tx_utilisation;  // 7: bytes in the last complete interval of 2^14 microseconds
    word_t        buffer;          // 8: unknown to v1model
    pad_16_t      pad_16;
    pad_8_t       pad_8;
    pad_4_t       pad_4;
    double_word_t pad_2;
    word_t        pad_1;
#ifdef INT_LOAD
    load_t        load;            // domain-specific 0
#endif
    word_t        complement;      // 15
}

// Of the instruction bitmap, bit 0 of the specification first.
#define INSTRUCTION_NODE_ID        [15:15]
#define INSTRUCTION_PORTS          [14:14]
#define INSTRUCTION_LATENCY        [13:13]
#define INSTRUCTION_QUEUE          [12:12]
#define INSTRUCTION_INGRESS_TIME   [11:11]
#define INSTRUCTION_EGRESS_TIME    [10:10]
#define INSTRUCTION_INTERFACES     [9:9]
#define INSTRUCTION_TX_UTILISATION [8:8]
#define INSTRUCTION_BUFFER         [7:7]
#define INSTRUCTION_COMPLEMENT     [0:0]

// The values that a node knows when a packet leaves.
struct hop_values_t {
    bit<32> node_id;
    bit<32> ports;
    bit<32> latency;
    bit<32> queue;
    bit<64> ingress_time;
    bit<64> egress_time;
    bit<64> interfaces;
    bit<32> tx_utilisation;
#ifdef INT_LOAD
    bit<64> load;
#endif
}

// Report group header, and individual report header with the main contents of RepType 1.
header report_t {
    bit<4>  version;
    bit<6>  hw_id;
    bit<22> sequence;
    bit<32> node_id;
    bit<4>  rep_type;
    bit<4>  in_type;
    bit<8>  length_;    // words behind this one
    bit<8>  md_length;  // words of metadata
    bit<1>  dropped;
    bit<1>  congested;
    bit<1>  tracked;
    bit<1>  intermediate;
    bit<4>  reserved;
    bit<16> md_bits;
    bit<16> domain_id;
    bit<16> ds_md_bits;
    bit<16> ds_md_status;
}

#endif
