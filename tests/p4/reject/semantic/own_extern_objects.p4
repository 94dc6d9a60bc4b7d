#include <core.p4>
#include <v1model.p4>

// Names of PSA's externs, one of them with PSA's parameters, and one that no architecture has.
extern Random<T> {
    Random(T low, T high);
    T read();
}
extern Register<T, S> {
    Register(bit<32> size);
    T read(in S index);
    void clear();
}
extern Cipher {
    Cipher(bit<8> key);
    bit<8> encrypt(in bit<8> data);
}

header h_t {
    bit<8> a;
    bit<8> b;
}
struct headers { h_t h; }
struct meta { }

parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.h);
        transition accept;
    }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    Random<bit<8>>(8w1, 8w6) dice;
    Register<bit<8>, bit<32>>(16) cells;
    Cipher(8w5) cipher;
    apply {
        hdr.h.a = dice.read();
        hdr.h.b = cipher.encrypt(cells.read(0));
        cells.clear();
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
