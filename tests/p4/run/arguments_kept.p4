// An argument keeps its value from the time of its evaluation, in every kind of callee and place: later arguments do not change it.
// The copy back is the callee's result from that value.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> p0; bit<8> p1;
    bit<8> f0; bit<8> f1; bit<8> f2;
    bit<8> c0; bit<8> c1;
    bit<8> g0; bit<8> g1;
    bit<8> l0; bit<8> l1;
    bit<8> n0;
}
header item_t { bit<8> v; bit<8> w; }
struct pair_t { bit<8> x; bit<8> y; }
struct headers_t { data_t d; item_t[3] s; item_t one; }
struct meta_t { pair_t pair; }

bit<8> bump(inout bit<8> v) { v = v + 1; return v; }
bit<8> clobber(inout bit<8> v) { v = 0xee; return 1; }
bit<8> clobber_item(inout item_t h) { h.v = 0xee; h.w = 0xdd; return 1; }
bit<8> drop_item(inout item_t h) { h.setInvalid(); return 1; }
bit<8> shift_items(inout item_t[3] s) { s.push_front(1); return 1; }
bit<8> add(inout bit<8> v, in bit<8> by) { v = v + by; return v; }
bit<8> untouched(inout bit<8> v, in bit<8> by) { return by; }
bit<8> count(in bit<8> before, in bit<8> one, in bit<8> after) { return (before << 4) | after; }
bit<8> nibble(inout bit<4> v, in bit<8> by) { v = v + 1; return by; }
void bump_item(inout item_t h, in bit<8> by) { h.v = h.v + by; }
void bump_pair(inout pair_t p, in bit<8> by) { p.x = p.x + by; }

parser Sub(inout bit<8> x, in bit<8> y) { state start { x = x + y; transition accept; } }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Sub() sub;
    state start {
        packet.extract(hdr.d);
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        packet.extract(hdr.one);
        // 5 + 1 = 6
        sub.apply(hdr.d.p0, clobber(hdr.d.p0));
        // The key's first part is from before the second's effect: 0, 1 and not 1, 1.
        transition select(hdr.d.p1, bump(hdr.d.p1)) {
            (0, 1): right;
            default: accept;
        }
    }
    state right { hdr.d.p1 = 0x77; transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) { apply { } }

control Add(inout bit<8> x, in bit<8> y, out bit<8> z) { apply { z = x; x = x + y; } }

action global_add(inout bit<8> x, in bit<8> y) { x = x + y; }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Add() once;
    Add() twice;
    action local_add(inout bit<8> x, in bit<8> y) { x = x + y; }
    action seven() { hdr.d.n0 = 7; }
    table always { key = { } actions = { seven; } const default_action = seven(); }

    apply {
        sm.egress_spec = 1;
        // Functions: 0x10 + 1, with nothing of 0xee.
        add(hdr.d.f0, clobber(hdr.d.f0));
        untouched(hdr.d.f1, clobber(hdr.d.f1));
        hdr.d.f2 = count(hdr.d.f2, bump(hdr.d.f2), hdr.d.f2);
        // Controls, applied at one place and at two.
        once.apply(hdr.d.c0, clobber(hdr.d.c0), hdr.d.c1);
        twice.apply(hdr.d.c1, clobber(hdr.d.c1), meta.pair.y);
        twice.apply(hdr.d.c1, bump(meta.pair.y), meta.pair.x);
        // Actions.
        global_add(hdr.d.g0, clobber(hdr.d.g0));
        global_add(x = hdr.d.g1, y = add(hdr.d.g1, 2));
        local_add(hdr.d.l0, clobber(hdr.d.l0));
        // A slice: the other bits are those of now, 0xe.
        nibble(hdr.d.l1[3:0], clobber(hdr.d.l1));
        // A table's action.
        add(hdr.d.n0, always.apply().hit ? 8w2 : 8w3);
        // Elements and whole headers.
        add(hdr.s[0].v, clobber(hdr.s[0].v));
        bump_item(hdr.s[1], clobber_item(hdr.s[1]));
        bit<8> i = 1;
        add(hdr.s[i].w, bump(i));
        add(hdr.s[i].w, shift_items(hdr.s));
        bump_item(hdr.one, drop_item(hdr.one));
        // Structs.
        pair_t pair = { 1, 2 };
        bump_pair(pair, clobber(pair.y));
        hdr.one.w = pair.x ++ pair.y == 16w0x0202 ? 8w1 : 8w0;
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
