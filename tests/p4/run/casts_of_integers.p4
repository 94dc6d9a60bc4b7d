// Casts of integers without a width keep the low bits in two's complement; what does not fit gives a warning.

#include <core.p4>
#include <v1model.p4>

type bit<16> N16;
type int<8> NS8;
enum bit<16> E16 { a = 1 }
enum bit<1> E1 { a = 1 }

header data_t {
    bit<40> n0;
    bit<40> n1;
    bit<40> n2;
    bit<40> n3;
    bit<40> n4;
    bit<40> n5;
    bit<40> n6;
    bit<40> n7;
    bit<40> n8;
    bit<40> n9;
    bit<40> n10;
    bit<40> n11;
    bit<40> n12;
    bit<40> n13;
    bit<40> n14;
    bit<40> n15;
    bit<40> n16;
    bit<40> n17;
    bit<40> n18;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.data.n0 = (bit<40>) (bit<8>) 300;
        hdr.data.n1 = (bit<40>) (bit<8>) -1;
        hdr.data.n2 = (bit<40>) (int<40>) (int<8>) 128;
        hdr.data.n3 = (bit<40>) (int<40>) (int<8>) -129;
        hdr.data.n4 = (bit<40>) (int<40>) (int<1>) 1;
        hdr.data.n5 = (bit<40>) (bit<16>) ((int) 8w255 + 1);
        hdr.data.n6 = (bit<40>) (bit<16>) ((int) -8s1);
        hdr.data.n7 = (bit<40>) (bit<4>) -9;
        hdr.data.n8 = (bit<40>) (bit<16>) (N16) 65537;
        hdr.data.n9 = (bit<40>) (int<40>) (int<8>) (NS8) 200;
        hdr.data.n10 = (bit<40>) (bit<16>) (E16) 65538;
        hdr.data.n11 = (bit<40>) (int<40>) (int<16>) ((int) 16w0xffff);
        hdr.data.n12 = (bit<40>) (bit<1>) (bool) 1;
        hdr.data.n13 = (bit<40>) (bit<1>) (bool) 0;
        hdr.data.n14 = (bit<40>) (bit<1>) (bool) (E1) 1;
        hdr.data.n15 = (bit<40>) (bit<33>) 0x300000001;
        hdr.data.n16 = (bit<40>) (bit<8>) (1 << 9);
        hdr.data.n17 = (bit<40>) (int<40>) (int<8>) (3 - 200);
        hdr.data.n18 = (bit<40>) (bit<8>) (-7 >> 1);
    }
}

#include "include/rest.p4"
