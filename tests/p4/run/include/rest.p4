// Common parts of the programs beside this directory.
//
// Each defines headers_t, meta_t and the ingress control I, then includes this. A block that it writes itself it announces
// with HAS_PARSER, HAS_VERIFY, HAS_EGRESS, HAS_COMPUTE or HAS_DEPARSER. The usual parser takes one header, hdr.data.

#ifndef HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}
#endif

#ifndef HAS_VERIFY
control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}
#endif

#ifndef HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { }
}
#endif

#ifndef HAS_COMPUTE
control C(inout headers_t hdr, inout meta_t meta) {
    apply { }
}
#endif

#ifndef HAS_DEPARSER
control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}
#endif

V1Switch(P(), V(), I(), E(), C(), D()) main;
