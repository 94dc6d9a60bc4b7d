// Casts between widths, between signed and unsigned, and between bit<1> and bool.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<16> a;
    bit<8>  b;
    bit<16> c;
    bit<8>  d;
    int<8>  e;
    bit<16> f;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.b = (bit<8>)hdr.data.a;
        hdr.data.c = (bit<16>)(int<16>)(int<8>)hdr.data.b;
        hdr.data.d = 7w0 ++ (bit<1>)(hdr.data.a > 0x100);
        if ((bool)hdr.data.a[0:0]) {
            hdr.data.d = hdr.data.d + 0x80;
        }
        hdr.data.e = (int<8>)hdr.data.a[15:8];
        // Truncation of a signed value keeps the low bits.
        hdr.data.f = (bit<16>)(bit<4>)(int<4>)(int<8>)hdr.data.b;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
