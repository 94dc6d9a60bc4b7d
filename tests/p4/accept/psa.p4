// A switch of PSA: both parsers and deparsers, a table with the port's translated type, bridged metadata, a digest.
#include <core.p4>
#include <psa.p4>

header tag_t {
    bit<8>  kind;
    PortIdInHeader_t port;
}

struct headers_t {
    tag_t tag;
}

struct meta_t {
    bit<8> class;
}

struct bridged_t {
    bit<8> class;
}

struct empty_t {
}

struct learn_t {
    bit<8> kind;
}

parser IngressParse(packet_in packet,
                    out headers_t hdr,
                    inout meta_t meta,
                    in psa_ingress_parser_input_metadata_t istd,
                    in empty_t resubmit_meta,
                    in empty_t recirculate_meta) {
    state start {
        packet.extract(hdr.tag);
        transition accept;
    }
}

control Forward(inout headers_t hdr,
                inout meta_t meta,
                in psa_ingress_input_metadata_t istd,
                inout psa_ingress_output_metadata_t ostd) {
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS_AND_BYTES) hits;
    action forward(PortId_t port, bit<8> class) {
        hits.count();
        meta.class = class;
        send_to_port(ostd, port);
    }
    action replicate(MulticastGroup_t group) {
        hits.count();
        multicast(ostd, group);
    }
    table ports {
        key = {
            istd.ingress_port: exact;
            hdr.tag.kind: ternary;
        }
        actions = { forward; replicate; @defaultonly NoAction; }
        psa_direct_counter = hits;
        psa_idle_timeout = PSA_IdleTimeout_t.NOTIFY_CONTROL;
    }
    apply {
        ports.apply();
    }
}

control IngressDeparse(packet_out packet,
                       out empty_t clone_i2e_meta,
                       out empty_t resubmit_meta,
                       out bridged_t normal_meta,
                       inout headers_t hdr,
                       in meta_t meta,
                       in psa_ingress_output_metadata_t istd) {
    Digest<learn_t>() learn;
    apply {
        if (psa_normal(istd)) {
            normal_meta.class = meta.class;
        }
        learn.pack({ hdr.tag.kind });
        packet.emit(hdr.tag);
    }
}

parser EgressParse(packet_in packet,
                   out headers_t hdr,
                   inout meta_t meta,
                   in psa_egress_parser_input_metadata_t istd,
                   in bridged_t normal_meta,
                   in empty_t clone_i2e_meta,
                   in empty_t clone_e2e_meta) {
    state start {
        meta.class = normal_meta.class;
        packet.extract(hdr.tag);
        transition accept;
    }
}

control Mark(inout headers_t hdr,
             inout meta_t meta,
             in psa_egress_input_metadata_t istd,
             inout psa_egress_output_metadata_t ostd) {
    Counter<bit<32>, PortId_t>(512, PSA_CounterType_t.PACKETS) sent;
    apply {
        hdr.tag.kind = meta.class;
        hdr.tag.port = psa_PortId_int_to_header(istd.egress_port);
        sent.count(istd.egress_port);
    }
}

control EgressDeparse(packet_out packet,
                      out empty_t clone_e2e_meta,
                      out empty_t recirculate_meta,
                      inout headers_t hdr,
                      in meta_t meta,
                      in psa_egress_output_metadata_t istd,
                      in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        packet.emit(hdr.tag);
    }
}

IngressPipeline(IngressParse(), Forward(), IngressDeparse()) ingress;
EgressPipeline(EgressParse(), Mark(), EgressDeparse()) egress;

PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;
