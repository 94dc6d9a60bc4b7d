// ++ puts its left operand above its right one; it works on odd and on wide operands.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<4>   a;
    bit<12>  b;
    bit<16>  c;
    bit<3>   d;
    bit<5>   e;
    bit<72>  f;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.c = hdr.data.b ++ hdr.data.a;
        bit<8> turned = hdr.data.e ++ hdr.data.d;
        hdr.data.f = turned ++ hdr.data.f[63:0];
        hdr.data.f = hdr.data.f[35:0] ++ hdr.data.f[71:36];
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
