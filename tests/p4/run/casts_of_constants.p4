// Casts of constants, which the compiler computes, and of the same values at run time: both give what the specification says,
// for every kind of type that has casts.

#include <core.p4>
#include <v1model.p4>

type bit<16> N16;
type int<8> NS8;
type bool NB;
enum bit<16> E16 { a = 1 }
enum bit<16> F16 { a = 2 }
enum bit<1> E1 { a = 1 }

header data_t {
    bit<16> x;
    bit<40> run0;
    bit<40> folded0;
    bit<40> run1;
    bit<40> folded1;
    bit<40> run2;
    bit<40> folded2;
    bit<40> run3;
    bit<40> folded3;
    bit<40> run4;
    bit<40> folded4;
    bit<40> run5;
    bit<40> folded5;
    bit<40> run6;
    bit<40> folded6;
    bit<40> run7;
    bit<40> folded7;
    bit<40> run8;
    bit<40> folded8;
    bit<40> run9;
    bit<40> folded9;
    bit<40> run10;
    bit<40> folded10;
    bit<40> run11;
    bit<40> folded11;
    bit<40> run12;
    bit<40> folded12;
    bit<40> run13;
    bit<40> folded13;
    bit<40> run14;
    bit<40> folded14;
    bit<40> run15;
    bit<40> folded15;
    bit<40> run16;
    bit<40> folded16;
    bit<40> run17;
    bit<40> folded17;
    bit<40> run18;
    bit<40> folded18;
    bit<40> run19;
    bit<40> folded19;
    bit<40> run20;
    bit<40> folded20;
    bit<40> run21;
    bit<40> folded21;
    bit<40> run22;
    bit<40> folded22;
    bit<40> run23;
    bit<40> folded23;
    bit<40> run24;
    bit<40> folded24;
    bit<40> run25;
    bit<40> folded25;
    bit<40> run26;
    bit<40> folded26;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action folded0() {
        hdr.data.folded0 = (bit<40>) (bit<8>) 16w0x8081;
        hdr.data.folded1 = (bit<40>) (bit<4>) 16w0x8081;
        hdr.data.folded2 = (bit<40>) (bit<1>) 16w0x8081;
        hdr.data.folded3 = (bit<40>) (bit<24>) 16w0x8081;
        hdr.data.folded4 = (bit<40>) (int<40>) (int<16>) 16w0x8081;
        hdr.data.folded5 = (bit<40>) (int<40>) (int<8>) (int<16>) 16w0x8081;
        hdr.data.folded6 = (bit<40>) (int<40>) (int<24>) (int<16>) 16w0x8081;
        hdr.data.folded7 = (bit<40>) (bit<24>) (int<24>) (int<16>) 16w0x8081;
        hdr.data.folded8 = (bit<40>) (int<40>) (int<11>) (int<5>) (int<16>) 16w0x8081;
        hdr.data.folded9 = (bit<40>) (bit<16>) (int<16>) (int<8>) (bit<8>) 16w0x8081;
        hdr.data.folded10 = (bit<40>) (bit<9>) (int<9>) (int<8>) (bit<8>) 16w0x8081;
        hdr.data.folded11 = (bit<40>) (bit<23>) (int<23>) (int<7>) (bit<7>) 16w0x8081;
        hdr.data.folded12 = (bit<40>) (int<40>) (int<16>) (int<1>) (bit<1>) 16w0x8081;
        hdr.data.folded13 = (bit<40>) (bit<3>) (int<3>) (int<1>) (bit<1>) 16w0x8081;
        hdr.data.folded14 = (bit<40>) (bit<20>) (bit<33>) (int<33>) (int<16>) 16w0x8081;
        hdr.data.folded15 = (bit<40>) (int<40>) (int<16>) (int<32>) (bit<32>) 16w0x8081;
        hdr.data.folded16 = (bit<40>) (int<40>) (int<16>) (bit<16>) (bit<3>) 16w0x8081;
        hdr.data.folded17 = (bit<40>) (bit<16>) (N16) 16w0x8081;
        hdr.data.folded18 = (bit<40>) (int<40>) (int<8>) (NS8) (int<8>) (bit<8>) 16w0x8081;
        hdr.data.folded19 = (bit<40>) (bit<16>) (E16) 16w0x8081;
        hdr.data.folded20 = (bit<40>) (bit<24>) (E16) 16w0x8081;
        hdr.data.folded21 = (bit<40>) (int<40>) (int<16>) (E16) 16w0x8081;
        hdr.data.folded22 = (bit<40>) (bit<16>) (F16) (E16) 16w0x8081;
        hdr.data.folded23 = (bit<40>) (bit<16>) (N16) (E16) 16w0x8081;
        hdr.data.folded24 = (bit<40>) (bit<1>) (bool) (bit<1>) 16w0x8081;
        hdr.data.folded25 = (bit<40>) (bit<1>) (bool) (NB) (bool) (bit<1>) 16w0x8081;
        hdr.data.folded26 = (bit<40>) (bit<1>) (bool) (E1) (bit<1>) 16w0x8081;
    }
    action folded1() {
        hdr.data.folded0 = (bit<40>) (bit<8>) 16w0x7f7e;
        hdr.data.folded1 = (bit<40>) (bit<4>) 16w0x7f7e;
        hdr.data.folded2 = (bit<40>) (bit<1>) 16w0x7f7e;
        hdr.data.folded3 = (bit<40>) (bit<24>) 16w0x7f7e;
        hdr.data.folded4 = (bit<40>) (int<40>) (int<16>) 16w0x7f7e;
        hdr.data.folded5 = (bit<40>) (int<40>) (int<8>) (int<16>) 16w0x7f7e;
        hdr.data.folded6 = (bit<40>) (int<40>) (int<24>) (int<16>) 16w0x7f7e;
        hdr.data.folded7 = (bit<40>) (bit<24>) (int<24>) (int<16>) 16w0x7f7e;
        hdr.data.folded8 = (bit<40>) (int<40>) (int<11>) (int<5>) (int<16>) 16w0x7f7e;
        hdr.data.folded9 = (bit<40>) (bit<16>) (int<16>) (int<8>) (bit<8>) 16w0x7f7e;
        hdr.data.folded10 = (bit<40>) (bit<9>) (int<9>) (int<8>) (bit<8>) 16w0x7f7e;
        hdr.data.folded11 = (bit<40>) (bit<23>) (int<23>) (int<7>) (bit<7>) 16w0x7f7e;
        hdr.data.folded12 = (bit<40>) (int<40>) (int<16>) (int<1>) (bit<1>) 16w0x7f7e;
        hdr.data.folded13 = (bit<40>) (bit<3>) (int<3>) (int<1>) (bit<1>) 16w0x7f7e;
        hdr.data.folded14 = (bit<40>) (bit<20>) (bit<33>) (int<33>) (int<16>) 16w0x7f7e;
        hdr.data.folded15 = (bit<40>) (int<40>) (int<16>) (int<32>) (bit<32>) 16w0x7f7e;
        hdr.data.folded16 = (bit<40>) (int<40>) (int<16>) (bit<16>) (bit<3>) 16w0x7f7e;
        hdr.data.folded17 = (bit<40>) (bit<16>) (N16) 16w0x7f7e;
        hdr.data.folded18 = (bit<40>) (int<40>) (int<8>) (NS8) (int<8>) (bit<8>) 16w0x7f7e;
        hdr.data.folded19 = (bit<40>) (bit<16>) (E16) 16w0x7f7e;
        hdr.data.folded20 = (bit<40>) (bit<24>) (E16) 16w0x7f7e;
        hdr.data.folded21 = (bit<40>) (int<40>) (int<16>) (E16) 16w0x7f7e;
        hdr.data.folded22 = (bit<40>) (bit<16>) (F16) (E16) 16w0x7f7e;
        hdr.data.folded23 = (bit<40>) (bit<16>) (N16) (E16) 16w0x7f7e;
        hdr.data.folded24 = (bit<40>) (bit<1>) (bool) (bit<1>) 16w0x7f7e;
        hdr.data.folded25 = (bit<40>) (bit<1>) (bool) (NB) (bool) (bit<1>) 16w0x7f7e;
        hdr.data.folded26 = (bit<40>) (bit<1>) (bool) (E1) (bit<1>) 16w0x7f7e;
    }
    action folded2() {
        hdr.data.folded0 = (bit<40>) (bit<8>) 16w0x0;
        hdr.data.folded1 = (bit<40>) (bit<4>) 16w0x0;
        hdr.data.folded2 = (bit<40>) (bit<1>) 16w0x0;
        hdr.data.folded3 = (bit<40>) (bit<24>) 16w0x0;
        hdr.data.folded4 = (bit<40>) (int<40>) (int<16>) 16w0x0;
        hdr.data.folded5 = (bit<40>) (int<40>) (int<8>) (int<16>) 16w0x0;
        hdr.data.folded6 = (bit<40>) (int<40>) (int<24>) (int<16>) 16w0x0;
        hdr.data.folded7 = (bit<40>) (bit<24>) (int<24>) (int<16>) 16w0x0;
        hdr.data.folded8 = (bit<40>) (int<40>) (int<11>) (int<5>) (int<16>) 16w0x0;
        hdr.data.folded9 = (bit<40>) (bit<16>) (int<16>) (int<8>) (bit<8>) 16w0x0;
        hdr.data.folded10 = (bit<40>) (bit<9>) (int<9>) (int<8>) (bit<8>) 16w0x0;
        hdr.data.folded11 = (bit<40>) (bit<23>) (int<23>) (int<7>) (bit<7>) 16w0x0;
        hdr.data.folded12 = (bit<40>) (int<40>) (int<16>) (int<1>) (bit<1>) 16w0x0;
        hdr.data.folded13 = (bit<40>) (bit<3>) (int<3>) (int<1>) (bit<1>) 16w0x0;
        hdr.data.folded14 = (bit<40>) (bit<20>) (bit<33>) (int<33>) (int<16>) 16w0x0;
        hdr.data.folded15 = (bit<40>) (int<40>) (int<16>) (int<32>) (bit<32>) 16w0x0;
        hdr.data.folded16 = (bit<40>) (int<40>) (int<16>) (bit<16>) (bit<3>) 16w0x0;
        hdr.data.folded17 = (bit<40>) (bit<16>) (N16) 16w0x0;
        hdr.data.folded18 = (bit<40>) (int<40>) (int<8>) (NS8) (int<8>) (bit<8>) 16w0x0;
        hdr.data.folded19 = (bit<40>) (bit<16>) (E16) 16w0x0;
        hdr.data.folded20 = (bit<40>) (bit<24>) (E16) 16w0x0;
        hdr.data.folded21 = (bit<40>) (int<40>) (int<16>) (E16) 16w0x0;
        hdr.data.folded22 = (bit<40>) (bit<16>) (F16) (E16) 16w0x0;
        hdr.data.folded23 = (bit<40>) (bit<16>) (N16) (E16) 16w0x0;
        hdr.data.folded24 = (bit<40>) (bit<1>) (bool) (bit<1>) 16w0x0;
        hdr.data.folded25 = (bit<40>) (bit<1>) (bool) (NB) (bool) (bit<1>) 16w0x0;
        hdr.data.folded26 = (bit<40>) (bit<1>) (bool) (E1) (bit<1>) 16w0x0;
    }
    action folded3() {
        hdr.data.folded0 = (bit<40>) (bit<8>) 16w0xffff;
        hdr.data.folded1 = (bit<40>) (bit<4>) 16w0xffff;
        hdr.data.folded2 = (bit<40>) (bit<1>) 16w0xffff;
        hdr.data.folded3 = (bit<40>) (bit<24>) 16w0xffff;
        hdr.data.folded4 = (bit<40>) (int<40>) (int<16>) 16w0xffff;
        hdr.data.folded5 = (bit<40>) (int<40>) (int<8>) (int<16>) 16w0xffff;
        hdr.data.folded6 = (bit<40>) (int<40>) (int<24>) (int<16>) 16w0xffff;
        hdr.data.folded7 = (bit<40>) (bit<24>) (int<24>) (int<16>) 16w0xffff;
        hdr.data.folded8 = (bit<40>) (int<40>) (int<11>) (int<5>) (int<16>) 16w0xffff;
        hdr.data.folded9 = (bit<40>) (bit<16>) (int<16>) (int<8>) (bit<8>) 16w0xffff;
        hdr.data.folded10 = (bit<40>) (bit<9>) (int<9>) (int<8>) (bit<8>) 16w0xffff;
        hdr.data.folded11 = (bit<40>) (bit<23>) (int<23>) (int<7>) (bit<7>) 16w0xffff;
        hdr.data.folded12 = (bit<40>) (int<40>) (int<16>) (int<1>) (bit<1>) 16w0xffff;
        hdr.data.folded13 = (bit<40>) (bit<3>) (int<3>) (int<1>) (bit<1>) 16w0xffff;
        hdr.data.folded14 = (bit<40>) (bit<20>) (bit<33>) (int<33>) (int<16>) 16w0xffff;
        hdr.data.folded15 = (bit<40>) (int<40>) (int<16>) (int<32>) (bit<32>) 16w0xffff;
        hdr.data.folded16 = (bit<40>) (int<40>) (int<16>) (bit<16>) (bit<3>) 16w0xffff;
        hdr.data.folded17 = (bit<40>) (bit<16>) (N16) 16w0xffff;
        hdr.data.folded18 = (bit<40>) (int<40>) (int<8>) (NS8) (int<8>) (bit<8>) 16w0xffff;
        hdr.data.folded19 = (bit<40>) (bit<16>) (E16) 16w0xffff;
        hdr.data.folded20 = (bit<40>) (bit<24>) (E16) 16w0xffff;
        hdr.data.folded21 = (bit<40>) (int<40>) (int<16>) (E16) 16w0xffff;
        hdr.data.folded22 = (bit<40>) (bit<16>) (F16) (E16) 16w0xffff;
        hdr.data.folded23 = (bit<40>) (bit<16>) (N16) (E16) 16w0xffff;
        hdr.data.folded24 = (bit<40>) (bit<1>) (bool) (bit<1>) 16w0xffff;
        hdr.data.folded25 = (bit<40>) (bit<1>) (bool) (NB) (bool) (bit<1>) 16w0xffff;
        hdr.data.folded26 = (bit<40>) (bit<1>) (bool) (E1) (bit<1>) 16w0xffff;
    }
    apply {
        sm.egress_spec = 1;
        hdr.data.run0 = (bit<40>) (bit<8>) hdr.data.x;
        hdr.data.run1 = (bit<40>) (bit<4>) hdr.data.x;
        hdr.data.run2 = (bit<40>) (bit<1>) hdr.data.x;
        hdr.data.run3 = (bit<40>) (bit<24>) hdr.data.x;
        hdr.data.run4 = (bit<40>) (int<40>) (int<16>) hdr.data.x;
        hdr.data.run5 = (bit<40>) (int<40>) (int<8>) (int<16>) hdr.data.x;
        hdr.data.run6 = (bit<40>) (int<40>) (int<24>) (int<16>) hdr.data.x;
        hdr.data.run7 = (bit<40>) (bit<24>) (int<24>) (int<16>) hdr.data.x;
        hdr.data.run8 = (bit<40>) (int<40>) (int<11>) (int<5>) (int<16>) hdr.data.x;
        hdr.data.run9 = (bit<40>) (bit<16>) (int<16>) (int<8>) (bit<8>) hdr.data.x;
        hdr.data.run10 = (bit<40>) (bit<9>) (int<9>) (int<8>) (bit<8>) hdr.data.x;
        hdr.data.run11 = (bit<40>) (bit<23>) (int<23>) (int<7>) (bit<7>) hdr.data.x;
        hdr.data.run12 = (bit<40>) (int<40>) (int<16>) (int<1>) (bit<1>) hdr.data.x;
        hdr.data.run13 = (bit<40>) (bit<3>) (int<3>) (int<1>) (bit<1>) hdr.data.x;
        hdr.data.run14 = (bit<40>) (bit<20>) (bit<33>) (int<33>) (int<16>) hdr.data.x;
        hdr.data.run15 = (bit<40>) (int<40>) (int<16>) (int<32>) (bit<32>) hdr.data.x;
        hdr.data.run16 = (bit<40>) (int<40>) (int<16>) (bit<16>) (bit<3>) hdr.data.x;
        hdr.data.run17 = (bit<40>) (bit<16>) (N16) hdr.data.x;
        hdr.data.run18 = (bit<40>) (int<40>) (int<8>) (NS8) (int<8>) (bit<8>) hdr.data.x;
        hdr.data.run19 = (bit<40>) (bit<16>) (E16) hdr.data.x;
        hdr.data.run20 = (bit<40>) (bit<24>) (E16) hdr.data.x;
        hdr.data.run21 = (bit<40>) (int<40>) (int<16>) (E16) hdr.data.x;
        hdr.data.run22 = (bit<40>) (bit<16>) (F16) (E16) hdr.data.x;
        hdr.data.run23 = (bit<40>) (bit<16>) (N16) (E16) hdr.data.x;
        hdr.data.run24 = (bit<40>) (bit<1>) (bool) (bit<1>) hdr.data.x;
        hdr.data.run25 = (bit<40>) (bit<1>) (bool) (NB) (bool) (bit<1>) hdr.data.x;
        hdr.data.run26 = (bit<40>) (bit<1>) (bool) (E1) (bit<1>) hdr.data.x;
        if (hdr.data.x == 0x8081) {
            folded0();
        } else if (hdr.data.x == 0x7f7e) {
            folded1();
        } else if (hdr.data.x == 0x0) {
            folded2();
        } else if (hdr.data.x == 0xffff) {
            folded3();
        }
    }
}

#include "include/rest.p4"
