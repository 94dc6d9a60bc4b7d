#include <core.p4>
#include <psa.p4>

// v1model's extern functions, declared by a PSA program.
extern void mark_to_drop(inout psa_ingress_output_metadata_t o);
extern void truncate(in bit<32> length);

struct empty_t { }
header h_t { bit<8> a; }
struct headers { h_t h; }

parser IP(packet_in p, out headers hdr, inout empty_t m, in psa_ingress_parser_input_metadata_t i, in empty_t r, in empty_t c) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}
control I(inout headers hdr, inout empty_t m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
    action drop() { mark_to_drop(o); }
    table t {
        key = { hdr.h.a : exact; }
        actions = { drop; NoAction; }
        default_action = NoAction;
    }
    apply { t.apply(); }
}
control ID(packet_out p, out empty_t c, out empty_t r, out empty_t n, inout headers hdr, in empty_t m, in psa_ingress_output_metadata_t o) {
    apply { p.emit(hdr.h); }
}
parser EP(packet_in p, out headers hdr, inout empty_t m, in psa_egress_parser_input_metadata_t i, in empty_t n, in empty_t c, in empty_t c2) {
    state start { transition accept; }
}
control E(inout headers hdr, inout empty_t m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) {
    apply { truncate(60); }
}
control ED(packet_out p, out empty_t c, out empty_t r, inout headers hdr, in empty_t m, in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) {
    apply { p.emit(hdr.h); }
}
IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
