// A field list named by a constant or an enum's member is the list with that number: at the field and at the call, in parentheses and in brackets.

#include <core.p4>
#include <v1model.p4>

const int FIRST = 1;
enum bit<8> Lists { SECOND = FIRST + 1 }

header data_t {
    bit<8> list;
    bit<8> first;
    bit<8> second;
    bit<8> both;
    bit<8> also_both;
}

struct headers_t { data_t data; }
struct meta_t {
    @field_list(FIRST)
    bit<8> first;
    @field_list(Lists.SECOND)
    bit<8> second;
    @field_list[FIRST, Lists.SECOND]
    bit<8> both;
    @field_list(FIRST, Lists.SECOND)
    bit<8> also_both;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        meta.first = 0x11;
        meta.second = 0x22;
        meta.both = 0x33;
        meta.also_both = 0x44;
        if (hdr.data.list == 1) {
            clone_preserving_field_list(CloneType.I2E, 5, FIRST);
        } else {
            clone_preserving_field_list(CloneType.I2E, 5, Lists.SECOND);
        }
        mark_to_drop(sm);
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.data.first = meta.first;
        hdr.data.second = meta.second;
        hdr.data.both = meta.both;
        hdr.data.also_both = meta.also_both;
    }
}

#include "include/rest.p4"
