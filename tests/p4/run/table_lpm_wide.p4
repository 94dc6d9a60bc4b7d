// Prefixes of a 128-bit key, beside an exact field.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>   vrf;
    bit<128> address;
    bit<8>   result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<8> v) { hdr.data.result = v; }

    table t {
        key = {
            hdr.data.vrf: exact;
            hdr.data.address: lpm;
        }
        actions = { set; }
        default_action = set(0xDD);
    }

    apply {
        t.apply();
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
