// Effects in operands, members, indexes, extern arguments, returns and compound assignments happen from left to right, and what was
// evaluated before them stays what it was.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> n;
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<16> h;
    bit<8> e; bit<8> f; bit<8> g; bit<8> i; bit<8> j; bit<8> k; bit<8> l;
    bit<8> m;
}
header item_t { bit<8> v; }
header option_t { bit<8> size; varbit<32> rest; }
struct headers_t { data_t d; option_t option; item_t[3] s; }
struct meta_t { bit<8> m; bit<16> w; }
struct two_t { bit<8> x; bit<8> y; }

bit<8> next(inout bit<8> x) { x = x + 1; return x; }
bit<8> clobber(inout bit<8> x) { x = 0xee; return 1; }
bit<8> both(inout bit<8> x) { return next(x) * 16 + next(x); }
two_t pair(inout bit<8> x) { return { y = next(x), x = next(x) }; }
bit<4> amount(inout bit<8> x) { x = x + 4; return x[3:0]; }
bool is_low(inout bit<8> x) { x = x + 1; return x < 0x20; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.d);
        meta.m = 8;
        // What was read before the effect is compared: 8 and 9, so nothing is rejected.
        verify(meta.m == 8 && next(meta.m) == 9, error.NoMatch);
        // The operand is from before the lookahead, which changes nothing: 8 more than its own size.
        packet.extract(hdr.option, (bit<32>)(packet.lookahead<bit<8>>() + (next(meta.m) - 10)) * 8);
        packet.extract(hdr.s.next);
        hdr.d.m = hdr.s.last.v + clobber(hdr.s[0].v) + hdr.s.last.v;
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) { apply { } }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(16) cells;
    action hundred() { hdr.d.n = 0x64; }
    table always { key = { hdr.d.n: exact; } actions = { hundred; } const default_action = hundred(); }

    apply {
        sm.egress_spec = 1;
        hdr.d.a = hdr.d.n + clobber(hdr.d.n) + hdr.d.n;    // 0x10 + 1 + 0xee
        hdr.d.n = 0;
        hdr.d.b = both(hdr.d.n);                           // 0x12
        hdr.d.c = pair(hdr.d.n).x == 4 ? hdr.d.n : clobber(hdr.d.n);  // 4
        hdr.d.d = { next(hdr.d.n), hdr.d.n, next(hdr.d.n) }[1];  // 5, and 6 has happened
        // The base is 6 and not 8; the data is 7, 7, 8.
        hash(hdr.d.h, HashAlgorithm.identity, (bit<16>)hdr.d.n, { next(hdr.d.n), hdr.d.n[3:0], 4w0, next(hdr.d.n) }, 32w0x1000000);
        // The index that is read stays 8, though its variable becomes 9.
        cells.write((bit<32>)hdr.d.n, next(hdr.d.n));
        cells.read(hdr.s[next(hdr.d.n) & 1].v, (bit<32>)hdr.d.n - 2);
        hdr.s[(bit<2>)hdr.d.n].v = next(hdr.d.n);          // s[2] = 0x0b
        // Compound assignments work on the old value of the left side, which is named once.
        hdr.d.e += clobber(hdr.d.e);                       // 0x20 + 1
        hdr.d.f <<= amount(hdr.d.f);                       // 1 << 5
        hdr.d.g[7:4] |= amount(hdr.d.g);                   // 0 | 4, over the lower half of 4
        hdr.s[(bit<2>)next(hdr.d.i)].v += next(hdr.d.i);   // s[1] += 2
        // Neither side's effects are skipped or repeated.
        if (is_low(hdr.d.j) && is_low(hdr.d.j) || is_low(hdr.d.j)) { hdr.d.k = hdr.d.j; }
        // A table's action in an operand.
        hdr.d.l = hdr.d.n + (always.apply().hit ? 8w1 : 8w2) + hdr.d.n;  // 0x0b + 2 + 0x64
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
