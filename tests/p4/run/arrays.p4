// Arrays of numbers, structs and arrays: constant and computed indexes, in metadata and in headers, copied and compared.

#include <core.p4>
#include <v1model.p4>

struct pair_t {
    bit<8> x;
    bit<8> y;
}

header data_t {
    bit<8>      i;
    bit<8>      j;
    bit<8>[4]   bytes;
    bit<8>      result;
    bit<8>      equal;
}

struct headers_t { data_t data; }
struct meta_t {
    bit<8>[2][3] grid;
    pair_t[2]    pairs;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    bit<8>[4] copy;
    apply {
        sm.egress_spec = 1;
        copy = hdr.data.bytes;
        copy[hdr.data.i] = copy[3] + 1;
        hdr.data.equal = copy == hdr.data.bytes ? 8w1 : 8w0;
        // the row comes last: three rows of two
        meta.grid[2][1] = 0x21;
        meta.grid[hdr.data.j][hdr.data.i] = 0x55;
        meta.pairs[1] = { 1, 2 };
        meta.pairs[hdr.data.i].y = 0x40;
        hdr.data.result = meta.grid[hdr.data.j][hdr.data.i] | meta.pairs[hdr.data.i].y | meta.pairs[1].x;
        for (bit<8> b in copy) {
            hdr.data.result = hdr.data.result ^ b;
        }
        hdr.data.bytes = copy;
        hdr.data.bytes[0][3:0] = 0xF;
        hdr.data.j = (bit<8>)copy.size;
    }
}

#include "include/rest.p4"
