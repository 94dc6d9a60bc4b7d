// The router of router.p4 for the Portable Switch Architecture: ingress checks and routes, egress parses again and writes the header
// checksum. It drops the same packets.

#include <core.p4>
#include <psa.p4>
#include "headers.p4"

#ifndef ROUTES
#define ROUTES 1000
#endif

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct empty_t {
}

parser RouterIngressParser(packet_in packet,
                           out headers_t hdr,
                           inout empty_t meta,
                           in psa_ingress_parser_input_metadata_t istd,
                           in empty_t resubmit_meta,
                           in empty_t recirculate_meta) {
    InternetChecksum() checksum;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default:        accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5, error.ParserInvalidArgument);
        checksum.clear();
        checksum.add(IPV4_CHECKSUM_FIELDS(hdr.ipv4));
        verify(checksum.get() == hdr.ipv4.hdr_checksum, error.ParserInvalidArgument);
        transition accept;
    }
}

control RouterIngress(inout headers_t hdr,
                      inout empty_t meta,
                      in psa_ingress_input_metadata_t istd,
                      inout psa_ingress_output_metadata_t ostd) {
    action drop() {
        ingress_drop(ostd);
    }

    action forward(PortIdUint_t port, mac_t src_addr, mac_t dst_addr) {
        send_to_port(ostd, (PortId_t)port);
        hdr.ethernet.src_addr = src_addr;
        hdr.ethernet.dst_addr = dst_addr;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table routes {
        key = {
            hdr.ipv4.dst_addr: lpm;
        }
        actions = {
            forward;
            drop;
        }
        default_action = drop();
        size = ROUTES;
    }

    apply {
        if (!hdr.ipv4.isValid() || istd.parser_error != error.NoError || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            routes.apply();
        }
    }
}

control RouterIngressDeparser(packet_out packet,
                              out empty_t clone_i2e_meta,
                              out empty_t resubmit_meta,
                              out empty_t normal_meta,
                              inout headers_t hdr,
                              in empty_t meta,
                              in psa_ingress_output_metadata_t istd) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

parser RouterEgressParser(packet_in packet,
                          out headers_t hdr,
                          inout empty_t meta,
                          in psa_egress_parser_input_metadata_t istd,
                          in empty_t normal_meta,
                          in empty_t clone_i2e_meta,
                          in empty_t clone_e2e_meta) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default:        accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control RouterEgress(inout headers_t hdr,
                     inout empty_t meta,
                     in psa_egress_input_metadata_t istd,
                     inout psa_egress_output_metadata_t ostd) {
    apply {
    }
}

control RouterEgressDeparser(packet_out packet,
                             out empty_t clone_e2e_meta,
                             out empty_t recirculate_meta,
                             inout headers_t hdr,
                             in empty_t meta,
                             in psa_egress_output_metadata_t istd,
                             in psa_egress_deparser_input_metadata_t edstd) {
    InternetChecksum() checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            checksum.clear();
            checksum.add(IPV4_CHECKSUM_FIELDS(hdr.ipv4));
            hdr.ipv4.hdr_checksum = checksum.get();
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

PSA_Switch(IngressPipeline(RouterIngressParser(), RouterIngress(), RouterIngressDeparser()),
           PacketReplicationEngine(),
           EgressPipeline(RouterEgressParser(), RouterEgress(), RouterEgressDeparser()),
           BufferingQueueingEngine()) main;
