// Constructs that the reference compiler's preprocessor accepts, because it takes programs for assembler: `##` between texts that make no
// single token, and lines that start with `#` and are no directives.
#include <core.p4>
#include <v1model.p4>

# A comment, with one " and one ' in it.
    # Another "one.
#!also this
#nonsense 1 2 3
#
# 3 lines follow
#define FIELD(of, name) of ## . ## name
#define OBJECT(kind, size, name) kind ## < ## bit<size> ## >(16) ## name ## ;
#define ADD(a, b) a ## + ## b
#define SHIFT(a, b) (a > ## > b)
#define CAT(a, b) a ## b
#if 0
# not even " here
#elifdef CAT
#define SEEN 1
#elifndef CAT
#define SEEN 2
#endif

header h_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        FIELD(packet, extract)(hdr.h);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    OBJECT(register, 8, marks)
    apply {
        hdr.h.a = ADD(FIELD(hdr.h, b), SEEN);
        hdr.h.b = SHIFT(hdr.h.b, CAT(8w, 3));
        marks.write(0, CAT(hdr.h., a));
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
