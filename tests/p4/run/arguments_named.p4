// Named arguments and named fields are evaluated, and copied back, in the order in which they are written.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> n;
    bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e;
    bit<8> f; bit<8> g; bit<8> i;
    bit<16> hashed;
    bit<8> p;
}
header item_t { bit<8> v; }
header pair_t { bit<8> hi; bit<8> lo; }
struct two_t { bit<8> hi; bit<8> lo; }
struct nested_t { two_t first; two_t second; bit<8> last; }
struct headers_t { data_t d; pair_t pair; item_t[4] s; }
struct meta_t { bit<8> m; }

bit<8> next(inout bit<8> x) { x = x + 1; return x; }
bit<8> digits(in bit<8> hi, in bit<8> lo) { return hi[3:0] ++ lo[3:0]; }
bit<8> defaults(in bit<8> hi, in bit<8> by = 0x10, in bit<8> lo) { return (hi[3:0] ++ lo[3:0]) + by; }
void fill(out bit<8> x, out bit<8> y) { x = 0xaa; y = 0xbb; }

control Digits(in bit<8> hi, in bit<8> lo, out bit<8> r)(bit<8> one, bit<8> two) {
    apply { r = (hi[3:0] ++ lo[3:0]) + (one - two); }
}

parser Sub(in bit<8> hi, out bit<8> r, in bit<8> lo) {
    state start { r = hi[3:0] ++ lo[3:0]; transition accept; }
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Sub() sub;
    state start {
        packet.extract(hdr.d);
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        packet.extract(hdr.s.next);
        meta.m = 0;
        sub.apply(lo = next(meta.m), r = hdr.d.p, hi = next(meta.m));
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) { apply { } }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Digits(two = 1, one = 2) digits_plus_one;
    register<bit<8>>(size = 16) cells;
    action act(in bit<8> hi, in bit<8> lo, out bit<8> r) { r = hi[3:0] ++ lo[3:0]; }

    apply {
        sm.egress_spec = 1;
        // lo = 1, hi = 2
        hdr.d.a = digits(lo = next(hdr.d.n), hi = next(hdr.d.n));
        // s[3] = 0xbb, s[4 & 3] = 0xaa
        fill(y = hdr.s[next(hdr.d.n)].v, x = hdr.s[next(hdr.d.n) & 3].v);
        // The last one written is copied back last.
        fill(y = hdr.d.b, x = hdr.d.b);
        // lo = 5, hi = 6, and one more
        digits_plus_one.apply(r = hdr.d.c, lo = next(hdr.d.n), hi = next(hdr.d.n));
        // lo = 7, hi = 8
        act(lo = next(hdr.d.n), r = hdr.d.d, hi = next(hdr.d.n));
        // A call in a call: lo is 0x09, the inner one 0xba, and its lower half is hi.
        hdr.d.e = digits(lo = next(hdr.d.n), hi = digits(lo = next(hdr.d.n), hi = next(hdr.d.n)));
        // lo = 0xc, hi = 0xd, and 0x10 more
        hdr.d.f = defaults(lo = next(hdr.d.n), hi = next(hdr.d.n));
        // Structs in structs: lo = 0xe, last = 0xf, hi = 0x10, then 0x11 and 0x12.
        nested_t t = {
            second = { lo = next(hdr.d.n), hi = 1 },
            last = next(hdr.d.n),
            first = { lo = next(hdr.d.n), hi = next(hdr.d.n) }
        };
        hdr.d.g = t.second.lo[3:0] ++ t.last[3:0];
        hdr.d.i = t.first.hi[3:0] ++ t.first.lo[3:0];
        // A header: lo = 0x12, hi = 0x13.
        hdr.pair = { lo = next(hdr.d.n), hi = next(hdr.d.n) };
        // Externs: the data is { 0x14, 0x15 }, the base 0x15 + 1.
        hash(data = { next(hdr.d.n), next(hdr.d.n) }, base = (bit<16>)next(hdr.d.n), max = 32w65536,
             algo = HashAlgorithm.identity, result = hdr.d.hashed);
        // The value is 0x17, the cell 8.
        cells.write(value = next(hdr.d.n), index = (bit<32>)(next(hdr.d.n) & 0xf));
        bit<8> cell = 8;
        cells.read(index = (bit<32>)cell, result = hdr.d.n);
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
