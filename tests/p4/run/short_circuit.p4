// && and || evaluate their right operand only when it matters; ?: only the operand it chooses.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> calls;
    bit<8> v;
}

struct headers_t { data_t data; }
struct meta_t { }

bool note(inout bit<8> calls, in bit<8> mark, in bool result) {
    calls = calls | mark;
    return result;
}

bit<8> value(inout bit<8> calls, in bit<8> mark) {
    calls = calls | mark;
    return mark;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bool yes = hdr.data.a == 1;
        if (yes && note(hdr.data.calls, 1, true)) {
            hdr.data.v = 1;
        }
        if (yes || note(hdr.data.calls, 2, false)) {
            hdr.data.v = hdr.data.v + 2;
        }
        hdr.data.v = hdr.data.v + (yes ? value(hdr.data.calls, 0x10) : value(hdr.data.calls, 0x20));
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
