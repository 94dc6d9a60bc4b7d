// Division and remainder are for what the compiler knows, so the operands here are constants of arbitrary precision.

#include <core.p4>
#include <v1model.p4>

const int BIG = 1 << 100;
const bit<8> QUOTIENT = (bit<8>)(BIG / (1 << 97));
const bit<8> REMAINDER = (bit<8>)((BIG + 77) % 100);

header data_t {
    bit<8> a;
    bit<8> b;
    bit<16> c;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.a = QUOTIENT;
        hdr.data.b = REMAINDER;
        hdr.data.c = (bit<16>)(-300 + 2 * 0x80);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
