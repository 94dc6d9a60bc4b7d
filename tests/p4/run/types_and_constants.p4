// typedef, type, constants, tuples, struct-valued constants, and structs in structs.

#include <core.p4>
#include <v1model.p4>

typedef bit<8> byte_t;
type bit<8> opaque_t;
const byte_t THREE = 3;
const bit<16> SHIFTED = (bit<16>)THREE << 8;

struct inner_t {
    byte_t x;
    byte_t y;
}

struct outer_t {
    inner_t one;
    inner_t two;
}

const inner_t FIXED = { 7, 8 };

header data_t {
    opaque_t a;
    byte_t   b;
    bit<16>  c;
}

struct headers_t { data_t data; }
struct meta_t { outer_t outer; }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        opaque_t v = (opaque_t)((bit<8>)hdr.data.a + THREE);
        meta.outer = { { 1, (bit<8>)hdr.data.a }, FIXED };
        inner_t t = meta.outer.two;
        meta.outer.two.x = 0xFF;
        tuple<bit<8>, bit<16>> pair = { hdr.data.b, SHIFTED };
        hdr.data.b = t.x + t.y + meta.outer.one.y + pair[0];
        hdr.data.c = pair[1] + 1;
        hdr.data.a = v;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
