#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
}

@controller_header("packet_in")
header in_t {
    @name("port") bit<8> x;
    @name("port") bit<8> y;
}

@name("same") struct one_t {
    bit<8> a;
}

@name("same") struct two_t {
    bit<16> b;
}

struct twice_t {
    @name("m") bit<8> a;
    @name("m") bit<16> b;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action set(@name("p") bit<8> a, @name("p") bit<8> b) {
        hdr.h.a = a;
        hdr.h.b = b;
    }

    @hidden action compare(@name("p") bit<8> a, bit<8> b) {
        hdr.h.a = a + b;
    }

    table t {
        key = { hdr.h.a: exact; }
        actions = { set; }
    }

    apply {
        compare(1, 2);
        t.apply();
        digest<one_t>(1, { hdr.h.a });
        digest<two_t>(1, { hdr.h.a ++ hdr.h.b });
        digest<twice_t>(1, { hdr.h.a, hdr.h.a ++ hdr.h.b });
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {}
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
