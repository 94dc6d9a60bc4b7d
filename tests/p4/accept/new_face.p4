// The face that V1MODEL_VERSION 20200408 has: port type and typed indexes.
#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<16> c;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    PortId_t port;
}

type bit<4> index_t;

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
    counter<index_t>(16, CounterType.packets) packets;
    register<bit<8>, index_t>(16) cells;
    meter<bit<40>>(16, MeterType.bytes) rate;

    apply {
        index_t i = (index_t) hdr.h.a[3:0];
        packets.count(i);
        cells.read(hdr.h.b, i);
        cells.write(i, hdr.h.a);
        rate.execute_meter(40w0xffffffffff, hdr.h.a);
        meta.port = standard_metadata.ingress_port;
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
