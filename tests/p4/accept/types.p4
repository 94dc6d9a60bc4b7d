// Typedefs, new types, enums, tuples, nested structs, generics, constants and initialisers.
#include <core.p4>
#include <v1model.p4>

typedef bit<8> byte_t;

type bit<16> port_t;

enum bit<8> Kind {
    Data = 1,
    Control = 2
}

enum Colour {
    Red,
    Green
}

struct pair_t<A, B> {
    A first;
    B second;
}

header h_t {
    Kind    kind;
    port_t  port;
    byte_t  length;
}

const byte_t LIMIT = 10 * 2;
const pair_t<byte_t, bool> DEFAULTS = { LIMIT + 1, true };

struct headers_t {
    h_t h;
}

struct metadata_t {
    pair_t<byte_t, bool> pair;
    Colour colour;
    tuple<byte_t, Colour> both;
    error problem;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        tuple<byte_t, bool> t = { hdr.h.length, false };
        meta.pair = DEFAULTS;
        meta.pair = { second = t[1], first = t[0] };
        meta.both = { LIMIT, Colour.Green };
        meta.colour = meta.both[1];
        meta.problem = error.NoMatch;
        if (hdr.h.kind == Kind.Control && meta.colour != Colour.Red) {
            hdr.h = { Kind.Data, (port_t) 16w7, LIMIT };
        }
        hdr.h.kind = (Kind) (hdr.h.length & 3);
        hdr.h.port = (port_t) ((bit<16>) hdr.h.port + 1);
        if (meta.pair == DEFAULTS) {
            hdr.h = (h_t) {#};
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
