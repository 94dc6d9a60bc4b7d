// A program that recirculates, without more: IPv4 packets leave at the port that the third byte of their destination names, after as many
// passes through the recirculation ports as their UDP destination port is above FIRST_PORT. The provisioning rule is about any program
// that recirculates (section VII), so the study tests it on the least one.

#include <core.p4>
#include <v1model.p4>

#define FIRST_PORT 20000

// A port without a link, where nothing waits.
#define RECIRCULATION_PORT 509

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<64> unused;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
}

struct metadata_t {
    @field_list(1)
    bit<16> passes;
}

parser RoundsParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            17: udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control RoundsChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control RoundsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (!hdr.udp.isValid()) {
            mark_to_drop(standard_metadata);
        } else if (FIRST_PORT + meta.passes < hdr.udp.dst_port) {
            standard_metadata.egress_spec = RECIRCULATION_PORT;
        } else {
            standard_metadata.egress_spec = (bit<9>) hdr.ipv4.dst[15:8];
        }
    }
}

control RoundsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == RECIRCULATION_PORT) {
            meta.passes = meta.passes + 1;
            recirculate_preserving_field_list(1);
        } else {
            // Every host takes it.
            hdr.ethernet.dst = 0xFFFFFFFFFFFF;
        }
    }
}

control RoundsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(RoundsParser(), RoundsChecksum(), RoundsIngress(), RoundsEgress(), RoundsChecksum(), RoundsDeparser()) main;
