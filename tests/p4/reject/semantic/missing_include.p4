// No file is included: each name has the file that declares it as a hint.
header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start {
        transition accept;
    }
}
control E(inout headers hdr, inout meta m, in psa_egress_input_metadata_t i, inout unheard_of_t o) {
    apply { }
}
control C(inout headers hdr) {
    table t {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
    }
    apply {
        t.apply();
    }
}
