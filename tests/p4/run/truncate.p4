// truncate cuts what leaves; to more than there is it does nothing.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> length;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        truncate((bit<32>)hdr.data.length);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
