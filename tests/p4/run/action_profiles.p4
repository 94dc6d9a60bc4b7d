// Entries of two tables run members of one action profile; a selector's table runs what its entry names.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> key;
    bit<8> flow;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action_profile(16) shared;
    action_selector(HashAlgorithm.crc16, 32w64, 32w10) chosen;

    action set(bit<8> v) { hdr.data.result = v; }
    action drop() { mark_to_drop(sm); }

    table a {
        key = { hdr.data.key: exact; }
        actions = { set; drop; NoAction; }
        default_action = NoAction();
        implementation = shared;
    }
    table b {
        key = { hdr.data.key: ternary; }
        actions = { drop; set; NoAction; }
        default_action = set(0xDD);
        implementation = shared;
    }
    table c {
        key = {
            hdr.data.key: exact;
            hdr.data.flow: selector;
        }
        actions = { set; drop; }
        default_action = drop();
        implementation = chosen;
    }

    apply {
        sm.egress_spec = 1;
        switch (a.apply().action_run) {
            NoAction: {
                if (!b.apply().hit) {
                    c.apply();
                }
            }
        }
    }
}

#include "include/rest.p4"
