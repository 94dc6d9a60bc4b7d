// Tables with different actions that share an action selector, as the reference compiler takes them: each entry runs its own
// table's action, whatever place that has in the table's list.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>  key;
    bit<8>  flow;
    bit<8>  result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action_selector(HashAlgorithm.crc32, 32, 32) shared;

    action first(bit<8> v) { hdr.data.result = v; }
    action both(bit<8> v) { hdr.data.result = hdr.data.result + v; }
    action second(bit<8> v) { hdr.data.result = hdr.data.result ^ v; }

    table a {
        key = {
            hdr.data.key: exact;
            hdr.data.flow: selector;
        }
        actions = { first; both; @defaultonly NoAction; }
        default_action = NoAction();
        implementation = shared;
    }
    table b {
        key = {
            hdr.data.key: exact;
            hdr.data.flow: selector;
        }
        actions = { second; @defaultonly NoAction; both; }
        default_action = NoAction();
        implementation = shared;
    }

    apply {
        sm.egress_spec = 1;
        a.apply();
        b.apply();
    }
}

#include "include/rest.p4"
