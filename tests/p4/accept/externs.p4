// Counters, meters, registers, hashes, random numbers, digests, logging.
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
    bit<8> x;
    bit<16> hash;
    bit<2> colour;
}

struct seen_t {
    bit<8>  a;
    bit<16> c;
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
    counter(16, CounterType.bytes) bytes;
    meter(16, MeterType.packets) rate;
    register<seen_t>(8) last;
    register<bool>(8) known;

    apply {
        bytes.count((bit<32>) hdr.h.a);
        rate.execute_meter((bit<32>) hdr.h.a, meta.colour);
        seen_t before;
        last.read(before, 3);
        last.write(3, { hdr.h.a, hdr.h.c });
        known.write((bit<32>) before.a, before.c == hdr.h.c);
        hash(meta.hash, HashAlgorithm.crc16, 16w10, { hdr.h.a, hdr.h.b, before }, 16w100);
        random(meta.x, 8w1, 6);
        digest<seen_t>(1, before);
        digest<seen_t>(1, { hdr.h.a, meta.hash });
        log_msg("a={} all={}", { hdr.h.a, hdr.h });
        assert(hdr.h.a != 0);
        truncate(64);
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
