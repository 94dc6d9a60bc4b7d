// exit in an action that a table runs leaves the whole control, but what was passed by copy is copied back first: the
// arguments of a control that is applied twice, and of the action itself. The next control runs all the same.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> which;
    bit<8> a;
    bit<8> b;
    bit<8> after;
    bit<8> egress;
}

struct headers_t { data_t data; }
struct meta_t { }

action leave() {
    exit;
}

control Sub(inout bit<8> x) {
    action stop(bit<8> v) {
        x = v;
        if (v != 0) {
            exit;
        }
        x = 0x77;
    }
    action go(bit<8> v) {
        x = v;
    }
    table t {
        key = { x: exact; }
        actions = { stop; go; leave; NoAction; }
        const entries = {
            1: stop(0x11);
            2: go(3);
            3: leave();
            4: stop(0);
        }
        default_action = NoAction();
    }
    apply {
        t.apply();
        x = x | 0x80;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Sub() sub;
    action bound(inout bit<8> y, bit<8> v) {
        y = v;
        exit;
    }
    table u {
        key = { hdr.data.which: exact; }
        actions = { bound(hdr.data.after); NoAction; }
        const entries = {
            9: bound(0x99);
        }
        default_action = NoAction();
    }
    apply {
        sm.egress_spec = 1;
        u.apply();
        sub.apply(hdr.data.a);
        sub.apply(hdr.data.b);
        hdr.data.after = 0xEE;
    }
}

#define HAS_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    table v {
        key = { hdr.data.which: exact; }
        actions = { leave; NoAction; }
        const entries = {
            7: leave();
        }
        default_action = NoAction();
    }
    apply {
        v.apply();
        hdr.data.egress = 0xE1;
    }
}

#include "include/rest.p4"
