// The thesis's scripts, which replaced a kernel: UDP packets of the host leave with the short header of four bytes and no Ethernet and IP,
// and arriving ones get the headers back that the host expects. It is no switch of the network, and takes no time.
//
// The definitions are HOST_PORT and NETWORK_PORT, HOST_MAC and GATEWAY_MAC, HOST_ADDRESS and OTHER_ADDRESS, OWN_STATION and
// OTHER_STATION.

#include <core.p4>
#include <v1model.p4>
#include "../../apps/headers.p4"

const bit<8> TTL = 64;

header short_t {
    bit<8> dst_addr;
    bit<8> src_addr;
    bit<8> protocol;
    bit<8> ttl;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    short_t    short;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
}

struct metadata_t {}

parser ScriptParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            HOST_PORT: parse_ethernet;
            default:   parse_short;
        }
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default:        accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (5, PROTOCOL_UDP): parse_udp;
            default:           accept;
        }
    }

    state parse_short {
        packet.extract(hdr.short);
        transition select(hdr.short.dst_addr, hdr.short.protocol) {
            (OWN_STATION, PROTOCOL_UDP): parse_udp;
            default:                     accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control ScriptVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ScriptIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (!hdr.udp.isValid()) {
            mark_to_drop(standard_metadata);
        } else if (hdr.ipv4.isValid()) {
            hdr.short.setValid();
            hdr.short = { OTHER_STATION, OWN_STATION, PROTOCOL_UDP, TTL };
            hdr.ethernet.setInvalid();
            hdr.ipv4.setInvalid();
            standard_metadata.egress_spec = NETWORK_PORT;
        } else {
            hdr.ethernet.setValid();
            hdr.ethernet = { HOST_MAC, GATEWAY_MAC, ETHERTYPE_IPV4 };
            hdr.ipv4.setValid();
            hdr.ipv4 = { 4, 5, 0, hdr.udp.length + 20, 0, 0, 0, hdr.short.ttl, PROTOCOL_UDP, 0, OTHER_ADDRESS, HOST_ADDRESS };
            hdr.short.setInvalid();
            standard_metadata.egress_spec = HOST_PORT;
        }
    }
}

control ScriptEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control ScriptComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), { IPV4_CHECKSUM_FIELDS(hdr.ipv4) }, hdr.ipv4.hdr_checksum,
                        HashAlgorithm.csum16);
    }
}

control ScriptDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.short);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(ScriptParser(), ScriptVerifyChecksum(), ScriptIngress(), ScriptEgress(), ScriptComputeChecksum(),
         ScriptDeparser()) main;
