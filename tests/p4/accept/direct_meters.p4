// An action that reads a direct meter, in a table that has the meter and in one that has not: there it is green.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> key;
    bit<8> colour;
}

struct headers_t { data_t data; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_meter<bit<8>>(MeterType.bytes) rate;

    action mark() {
        rate.read(hdr.data.colour);
    }

    action only_without() {
        rate.read(hdr.data.colour);
    }

    table with_meter {
        key = { hdr.data.key: exact; }
        actions = { mark; NoAction; }
        meters = rate;
    }
    table without_meter {
        key = { hdr.data.key: ternary; }
        actions = { mark; only_without; NoAction; }
    }

    apply {
        if (!with_meter.apply().hit) {
            without_meter.apply();
        }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), V(), D()) main;
