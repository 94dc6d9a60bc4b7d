// All ways of a packet through PSA: unicast, multicast, clones of both kinds, resubmission, recirculation, drops; with what each
// brings along, and what each parser and control is told.
#include <core.p4>
#include <psa.p4>

header data_t {
    bit<8>  kind;
    bit<8>  hops;
    bit<16> note;
    bit<8>  path;
    bit<8>  port;
}

struct headers_t {
    data_t data;
}

struct ingress_t {
    bit<16> again;
}

struct egress_t {
    bit<16> note;
    bit<8>  path;
}

struct normal_t {
    bit<16> note;
}

struct clone_t {
    bit<8> mark;
}

struct again_t {
    bit<16> note;
}

bit<8> number(in PSA_PacketPath_t path) {
    if (path == PSA_PacketPath_t.NORMAL) return 0;
    if (path == PSA_PacketPath_t.NORMAL_UNICAST) return 1;
    if (path == PSA_PacketPath_t.NORMAL_MULTICAST) return 2;
    if (path == PSA_PacketPath_t.CLONE_I2E) return 3;
    if (path == PSA_PacketPath_t.CLONE_E2E) return 4;
    if (path == PSA_PacketPath_t.RESUBMIT) return 5;
    return 6;
}

parser IngressParserImpl(packet_in packet,
                         out headers_t hdr,
                         inout ingress_t meta,
                         in psa_ingress_parser_input_metadata_t istd,
                         in again_t resubmit_meta,
                         in again_t recirculate_meta) {
    state start {
        packet.extract(hdr.data);
        transition select(istd.packet_path) {
            PSA_PacketPath_t.RESUBMIT: resubmitted;
            PSA_PacketPath_t.RECIRCULATE: recirculated;
            default: accept;
        }
    }
    state resubmitted {
        meta.again = resubmit_meta.note;
        transition accept;
    }
    state recirculated {
        meta.again = recirculate_meta.note;
        transition accept;
    }
}

control IngressImpl(inout headers_t hdr,
                    inout ingress_t meta,
                    in psa_ingress_input_metadata_t istd,
                    inout psa_ingress_output_metadata_t ostd) {
    apply {
        hdr.data.hops = hdr.data.hops + 1;
        if (istd.packet_path == PSA_PacketPath_t.RESUBMIT) {
            hdr.data.note = meta.again;
            hdr.data.port = (bit<8>)(PortIdUint_t)istd.ingress_port;
            send_to_port(ostd, (PortId_t)2);
        } else if (istd.packet_path == PSA_PacketPath_t.RECIRCULATE) {
            hdr.data.note = meta.again + 1;
            hdr.data.port = (bit<8>)(PortIdUint_t)istd.ingress_port;
            send_to_port(ostd, (PortId_t)3);
        } else if (hdr.data.kind == 1) {
            send_to_port(ostd, (PortId_t)1);
        } else if (hdr.data.kind == 2) {
            ostd.class_of_service = (ClassOfService_t)9;
            multicast(ostd, (MulticastGroup_t)7);
        } else if (hdr.data.kind == 3) {
            // The clone is made although the packet itself is dropped.
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t)5;
            ingress_drop(ostd);
        } else if (hdr.data.kind == 4 || hdr.data.kind == 5) {
            // Egress clones, and drops the original of the second kind.
            send_to_port(ostd, (PortId_t)4);
        } else if (hdr.data.kind == 6) {
            send_to_port(ostd, (PortId_t)1);
            ostd.resubmit = true;
        } else if (hdr.data.kind == 7) {
            send_to_port(ostd, PSA_PORT_RECIRCULATE);
        } else if (hdr.data.kind == 8) {
            // A packet that is dropped is not resubmitted.
            ostd.resubmit = true;
        } else if (hdr.data.kind == 9) {
            send_to_port(ostd, PSA_PORT_CPU);
        }
        // Without a word, a packet is dropped.
    }
}

control IngressDeparserImpl(packet_out packet,
                            out clone_t clone_i2e_meta,
                            out again_t resubmit_meta,
                            out normal_t normal_meta,
                            inout headers_t hdr,
                            in ingress_t meta,
                            in psa_ingress_output_metadata_t istd) {
    apply {
        if (psa_clone_i2e(istd)) {
            clone_i2e_meta.mark = 0xc1;
        }
        if (psa_resubmit(istd)) {
            resubmit_meta.note = 0xaaaa;
        }
        if (psa_normal(istd)) {
            normal_meta.note = hdr.data.note + 0x100;
        }
        packet.emit(hdr);
    }
}

parser EgressParserImpl(packet_in packet,
                        out headers_t hdr,
                        inout egress_t meta,
                        in psa_egress_parser_input_metadata_t istd,
                        in normal_t normal_meta,
                        in clone_t clone_i2e_meta,
                        in clone_t clone_e2e_meta) {
    state start {
        meta.path = number(istd.packet_path);
        packet.extract(hdr.data);
        transition select(istd.packet_path) {
            PSA_PacketPath_t.CLONE_I2E: cloned_from_ingress;
            PSA_PacketPath_t.CLONE_E2E: cloned_from_egress;
            default: ordinary;
        }
    }
    state ordinary {
        meta.note = normal_meta.note;
        transition accept;
    }
    state cloned_from_ingress {
        meta.note = 8w0 ++ clone_i2e_meta.mark;
        transition accept;
    }
    state cloned_from_egress {
        meta.note = 8w1 ++ clone_e2e_meta.mark;
        transition accept;
    }
}

control EgressImpl(inout headers_t hdr,
                   inout egress_t meta,
                   in psa_egress_input_metadata_t istd,
                   inout psa_egress_output_metadata_t ostd) {
    apply {
        hdr.data.note = meta.note;
        hdr.data.path = meta.path;
        if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) {
            hdr.data.port = (bit<8>)(EgressInstanceUint_t)istd.instance + (bit<8>)(ClassOfServiceUint_t)istd.class_of_service;
        } else if (istd.packet_path != PSA_PacketPath_t.NORMAL_UNICAST) {
            hdr.data.port = (bit<8>)(ClassOfServiceUint_t)istd.class_of_service;
        } else if (hdr.data.kind == 4 || hdr.data.kind == 5) {
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t)6;
            if (hdr.data.kind == 5) {
                egress_drop(ostd);
            }
        }
    }
}

control EgressDeparserImpl(packet_out packet,
                           out clone_t clone_e2e_meta,
                           out again_t recirculate_meta,
                           inout headers_t hdr,
                           in egress_t meta,
                           in psa_egress_output_metadata_t istd,
                           in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        if (psa_clone_e2e(istd)) {
            clone_e2e_meta.mark = 0xe2;
        }
        if (psa_recirculate(istd, edstd)) {
            recirculate_meta.note = 0xbbbb;
        }
        packet.emit(hdr.data);
    }
}

IngressPipeline(IngressParserImpl(), IngressImpl(), IngressDeparserImpl()) ingress;
EgressPipeline(EgressParserImpl(), EgressImpl(), EgressDeparserImpl()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;
