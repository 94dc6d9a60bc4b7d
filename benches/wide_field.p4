// A 256-bit field: forwarding on a bit string as BIER does it (RFC 8279, section 6.5), with a shift in addition.
//
// The table gives the bits that a neighbour reaches. The packet keeps those bits, with a flag for whether it had others, and carries the 32
// bits from an offset on in a field of their own. A packet without any bit left is dropped.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

#ifndef NEIGHBOURS
#define NEIGHBOURS 4096
#endif

const bit<16> ETHERTYPE_BITS = 0xab37;

header bits_t {
    bit<16>  table_id;
    bit<8>   ttl;
    bit<8>   offset;
    bit<32>  window;
    bit<256> bits;
}

struct headers_t {
    ethernet_t ethernet;
    bits_t     bits;
}

struct metadata_t {
}

parser WideParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_BITS: parse_bits;
            default:        accept;
        }
    }

    state parse_bits {
        packet.extract(hdr.bits);
        transition accept;
    }
}

control WideVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control WideIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }

    action forward(bit<256> reachable, port_t port, mac_t dst_addr) {
        bit<256> kept = hdr.bits.bits & reachable;
        if (kept == 0 || hdr.bits.ttl <= 1) {
            drop();
        } else {
            // The highest bit of the window tells whether others go elsewhere.
            hdr.bits.window = (bit<32>)(kept >> hdr.bits.offset);
            if (kept != hdr.bits.bits) {
                hdr.bits.window = hdr.bits.window | 0x80000000;
            }
            hdr.bits.bits = kept;
            hdr.bits.ttl = hdr.bits.ttl - 1;
            hdr.ethernet.dst_addr = dst_addr;
            std.egress_spec = port;
        }
    }

    table neighbours {
        key = {
            hdr.bits.table_id: exact;
        }
        actions = {
            forward;
            drop;
        }
        default_action = drop();
        size = NEIGHBOURS;
    }

    apply {
        if (hdr.bits.isValid()) {
            neighbours.apply();
        } else {
            drop();
        }
    }
}

control WideEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
    }
}

control WideComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control WideDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.bits);
    }
}

V1Switch(WideParser(), WideVerifyChecksum(), WideIngress(), WideEgress(), WideComputeChecksum(), WideDeparser()) main;
