// Selects on structs and on tuples within tuples; ranges of signed numbers, one through zero; a range that is empty.

#include <core.p4>
#include <v1model.p4>

struct pair_t {
    bit<8> x;
    bit<8> y;
}

header data_t {
    pair_t pair;
    int<8> number;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { bit<8> found; }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.pair, { hdr.data.pair.y, hdr.data.pair.x }) {
            ({ 1, 2 }, _): first;
            (_, { 7, 7 }): second;
            default: number;
        }
    }
    state number {
        transition select(hdr.data.number, hdr.data.pair.x) {
            (5..1, _): never;
            (-3..2, 9): third;
            (-100..-50, _): fourth;
            default: accept;
        }
    }
    state first {
        meta.found = 1;
        transition accept;
    }
    state second {
        meta.found = 2;
        transition accept;
    }
    state third {
        meta.found = 3;
        transition accept;
    }
    state fourth {
        meta.found = 4;
        transition accept;
    }
    state never {
        meta.found = 9;
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<8> v) {
        hdr.data.result = v;
    }
    table t {
        key = { hdr.data.number: range; }
        actions = { set; NoAction; }
        const entries = {
            -2..1: set(0x10);
            -128..-3: set(0x20);
            2..127: set(0x30);
        }
        default_action = NoAction();
    }
    apply {
        t.apply();
        hdr.data.result = hdr.data.result | meta.found;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
