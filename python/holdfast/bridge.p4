// A learning bridge (IEEE 802.1Q, section 8.7 and 8.8) without a spanning tree: it needs no controller. All ports are in multicast group 1.
//
// Addresses are in registers, at the hash of the address; of two with one hash the later one stays, and the other one is flooded.

#include <core.p4>
#include <v1model.p4>

#define ADDRESSES 4096
// Microseconds: an address that was not heard for so long is forgotten (section 8.8.3).
#define AGEING 48w300000000
#define GROUP 1
// 01-80-C2-00-00-00 to -0F are for the neighbour alone (section 8.6.3).
#define RESERVED 44w0x0180C200000

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

parser BridgeParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control BridgeVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control BridgeIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<48>>(ADDRESSES) addresses;
    register<bit<16>>(ADDRESSES) ports;
    // The time at which it was heard last, and 1; 0 if it never was.
    register<bit<48>>(ADDRESSES) heard;

    apply {
        if (!hdr.ethernet.isValid() || hdr.ethernet.dst[47:4] == RESERVED) {
            mark_to_drop(std);
            return;
        }
        bit<32> place;
        bit<48> now = std.ingress_global_timestamp;
        if (hdr.ethernet.src[40:40] == 0) {
            hash(place, HashAlgorithm.crc32, 32w0, { hdr.ethernet.src }, (bit<32>)ADDRESSES);
            addresses.write(place, hdr.ethernet.src);
            ports.write(place, (bit<16>)std.ingress_port);
            heard.write(place, now + 1);
        }
        bool is_known = false;
        if (hdr.ethernet.dst[40:40] == 0) {
            bit<48> address;
            bit<16> port;
            bit<48> since;
            hash(place, HashAlgorithm.crc32, 32w0, { hdr.ethernet.dst }, (bit<32>)ADDRESSES);
            addresses.read(address, place);
            ports.read(port, place);
            heard.read(since, place);
            is_known = address == hdr.ethernet.dst && since != 0 && now + 1 - since < AGEING;
            if (is_known) {
                std.egress_spec = (bit<9>)port;
                if (std.egress_spec == std.ingress_port) {
                    mark_to_drop(std);
                }
            }
        }
        if (!is_known) {
            std.mcast_grp = GROUP;
        }
    }
}

control BridgeEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == std.ingress_port) {
            mark_to_drop(std);
        }
    }
}

control BridgeCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control BridgeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(BridgeParser(), BridgeVerify(), BridgeIngress(), BridgeEgress(), BridgeCompute(), BridgeDeparser()) main;
