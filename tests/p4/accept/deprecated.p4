// Uses of what is deprecated: all are warned of.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
}
struct headers_t { h_t h; }
struct meta_t { }

@deprecated("use sum")
bit<8> old_sum(in bit<8> x) { return x + 1; }
@deprecated("use clear")
action old_clear(inout bit<8> x) { x = 0; }
@deprecated("use set")
action old_set(bit<8> v) { }
@deprecated("use Part")
control OldPart(inout headers_t hdr) { apply { hdr.h.b = 1; } }
@deprecated("use Sub")
parser OldSub(packet_in p, inout headers_t hdr) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}

parser MyParser(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    OldSub() sub;
    state start {
        sub.apply(p, hdr);
        transition accept;
    }
}
control NoChecks(inout headers_t hdr, inout meta_t m) { apply { } }
control MyIngress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    Checksum16() sum;
    table t {
        key = { hdr.h.a : exact; }
        actions = { old_set; NoAction; }
    }
    apply {
        hdr.h.a = old_sum(hdr.h.b);
        old_clear(hdr.h.a);
        OldPart.apply(hdr);
        hdr.h.b = sum.get({ hdr.h.a })[7:0];
        t.apply();
    }
}
control MyEgress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control MyDeparser(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
V1Switch(MyParser(), NoChecks(), MyIngress(), MyEgress(), NoChecks(), MyDeparser()) main;
