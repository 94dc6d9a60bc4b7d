// Emitting a struct emits its headers in order, invalid ones left out, stacks element by element.

#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> mask; }
header tag_t { bit<8> v; }

struct inner_t {
    tag_t    one;
    tag_t[3] many;
}

struct headers_t {
    data_t  data;
    inner_t inner;
    tag_t   last;
}
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.last = { 0x99 };
        if (hdr.data.mask[0:0] == 1) { hdr.inner.one = { 1 }; }
        if (hdr.data.mask[1:1] == 1) { hdr.inner.many[0] = { 0x10 }; }
        if (hdr.data.mask[2:2] == 1) { hdr.inner.many[1] = { 0x20 }; }
        if (hdr.data.mask[3:3] == 1) { hdr.inner.many[2] = { 0x30 }; }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
