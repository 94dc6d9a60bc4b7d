// The arguments that a table gives to its actions are evaluated when the action is invoked: the effects of no other action's happen,
// and those of the invoked one's happen after the lookup.

#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> k; bit<8> n; bit<8> r; bit<8> q; bit<8> seen; }
header item_t { bit<8> v; }
struct headers_t { data_t d; item_t[2] s; }
struct meta_t { bit<8> own; }

bit<8> add(inout bit<8> x, in bit<8> by) { x = x + by; return x; }

action store(inout bit<8> target, in bit<8> v, bit<8> data) { target = target + v + data; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.d);
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) { apply { } }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action one(in bit<8> v) { hdr.d.r = v; }
    action two(in bit<8> p, in bit<8> q) { hdr.d.r = p; hdr.d.q = q; }
    action leave(inout bit<8> v) { v = v + 1; exit; }

    // The key is looked up before the argument changes it.
    table t {
        key = { hdr.d.k: exact; }
        actions = {
            one(add(hdr.d.k, 0x10));
            two(q = add(hdr.d.n, 1), p = add(hdr.d.n, 1));
            store(hdr.s[(bit<1>)add(hdr.d.n, 1)].v, add(hdr.d.n, 2));
            leave(hdr.s[1].v);
            NoAction;
        }
        const entries = {
            1: one(add(hdr.d.k, 0x10));
            2: two(q = add(hdr.d.n, 1), p = add(hdr.d.n, 1));
            3: store(5);
            4: leave(hdr.s[1].v);
            5: two(add(hdr.d.n, 1), add(hdr.d.n, 1));
        }
        default_action = NoAction();
    }
    // The same top-level action with other arguments.
    table u {
        key = { hdr.d.k: exact; }
        actions = { store(hdr.d.seen, hdr.d.n); NoAction; }
        const entries = { 3: store(0); }
        default_action = store(hdr.d.seen, hdr.d.n, 0x40);
    }
    // Named arguments in a default action.
    table w {
        key = { hdr.d.k: exact; }
        actions = { two(q = hdr.d.r, p = hdr.d.q); }
        default_action = two(q = hdr.d.r, p = hdr.d.q);
    }

    apply {
        sm.egress_spec = 1;
        t.apply();
        u.apply();
        w.apply();
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
