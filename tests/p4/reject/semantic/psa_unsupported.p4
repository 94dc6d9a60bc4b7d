#include <core.p4>
#include <psa.p4>

struct empty_t {
}

parser IP(packet_in packet,
          out empty_t hdr,
          inout empty_t meta,
          in psa_ingress_parser_input_metadata_t istd,
          in empty_t resubmit_meta,
          in empty_t recirculate_meta) {
    state start {
        transition accept;
    }
}

control I(inout empty_t hdr,
          inout empty_t meta,
          in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    Meter<bit<8>>(4, PSA_MeterType_t.BYTES) rates;
    Register<bit<8>, bit<8>>(4, 7) sevens;
    Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc;
    apply {
        ostd.drop = rates.execute(1, PSA_MeterColor_t.YELLOW) == PSA_MeterColor_t.RED;
    }
}

control ID(packet_out packet,
           out empty_t clone_i2e_meta,
           out empty_t resubmit_meta,
           out empty_t normal_meta,
           inout empty_t hdr,
           in empty_t meta,
           in psa_ingress_output_metadata_t istd) {
    InternetChecksum() sum;
    apply {
        sum.add(8w1);
    }
}

parser EP(packet_in packet,
          out empty_t hdr,
          inout empty_t meta,
          in psa_egress_parser_input_metadata_t istd,
          in empty_t normal_meta,
          in empty_t clone_i2e_meta,
          in empty_t clone_e2e_meta) {
    state start {
        transition accept;
    }
}

control E(inout empty_t hdr,
          inout empty_t meta,
          in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply {
    }
}

control ED(packet_out packet,
           out empty_t clone_e2e_meta,
           out empty_t recirculate_meta,
           inout empty_t hdr,
           in empty_t meta,
           in psa_egress_output_metadata_t istd,
           in psa_egress_deparser_input_metadata_t edstd) {
    apply {
    }
}

PSA_Switch(IngressPipeline(IP(), I(), ID()),
           PacketReplicationEngine(),
           EgressPipeline(EP(), E(), ED()),
           BufferingQueueingEngine()) main;
