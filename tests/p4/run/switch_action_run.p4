// switch on the action that a table ran: labels that share a body, default, and the miss.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> key;
    bit<8> action_mark;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action one() { hdr.data.action_mark = 1; }
    action two(bit<8> v) { hdr.data.action_mark = v; }
    action three() { hdr.data.action_mark = 3; }
    action four() { hdr.data.action_mark = 4; }

    table t {
        key = { hdr.data.key: exact; }
        actions = { one; two; three; four; }
        const default_action = four();
    }

    apply {
        switch (t.apply().action_run) {
            one: { hdr.data.result = hdr.data.action_mark + 0x10; }
            two:
            three: { hdr.data.result = hdr.data.action_mark + 0x20; }
            default: { hdr.data.result = 0xDD; }
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
