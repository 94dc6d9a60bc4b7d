#include <core.p4>
#include <v1model.p4>
struct H { }
struct M { bit<8> a; bit<2> colour; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action_selector(HashAlgorithm.crc16, 32w64, 32w65) broad;
    action_profile(16) shared;
    direct_meter<bit<2>>(MeterType.bytes) rate;
    action read() { rate.read(m.colour); }
    action other() { }
    table a {
        key = { m.a: exact; }
        actions = { read; other; }
        meters = rate;
        implementation = shared;
    }
    table b {
        key = { m.a: exact; }
        actions = { read; }
        implementation = shared;
    }
    table c {
        key = { m.a: exact; }
        actions = { other; }
        implementation = action_profile(4);
        const entries = { 1: other(); }
    }
    apply {
        a.apply();
        b.apply();
        c.apply();
        rate.read(m.colour);
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
