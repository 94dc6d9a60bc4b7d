#include <core.p4>
#include <v1model.p4>
header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    bit<8> x;
}

void f0(inout bit<8> x) {
    x = x + 1;
}

void f1(inout bit<8> x) {
    f0(x);
    f0(x);
}

void f2(inout bit<8> x) {
    f1(x);
    f1(x);
}

void f3(inout bit<8> x) {
    f2(x);
    f2(x);
}

void f4(inout bit<8> x) {
    f3(x);
    f3(x);
}

void f5(inout bit<8> x) {
    f4(x);
    f4(x);
}

void f6(inout bit<8> x) {
    f5(x);
    f5(x);
}

void f7(inout bit<8> x) {
    f6(x);
    f6(x);
}

void f8(inout bit<8> x) {
    f7(x);
    f7(x);
}

void f9(inout bit<8> x) {
    f8(x);
    f8(x);
}

void f10(inout bit<8> x) {
    f9(x);
    f9(x);
}

void f11(inout bit<8> x) {
    f10(x);
    f10(x);
}

void f12(inout bit<8> x) {
    f11(x);
    f11(x);
}

void f13(inout bit<8> x) {
    f12(x);
    f12(x);
}

void f14(inout bit<8> x) {
    f13(x);
    f13(x);
}

void f15(inout bit<8> x) {
    f14(x);
    f14(x);
}

void f16(inout bit<8> x) {
    f15(x);
    f15(x);
}

void f17(inout bit<8> x) {
    f16(x);
    f16(x);
}

void f18(inout bit<8> x) {
    f17(x);
    f17(x);
}

void f19(inout bit<8> x) {
    f18(x);
    f18(x);
}

void f20(inout bit<8> x) {
    f19(x);
    f19(x);
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        f20(meta.x);
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
