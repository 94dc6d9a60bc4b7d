header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct metadata_t { }
parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s)
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    action a() { hdr.h.a = 1; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { a; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.h.isValid()) {
            t.apply();
        } else {
            a();
        }
    }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), I(), V(), D()) main;
