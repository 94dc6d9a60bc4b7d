// Tables to be filled: one per key shape. The packets do not matter.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

header keys_t {
    bit<32>  a32;
    bit<32>  b32;
    bit<48>  a48;
    bit<16>  a16;
    bit<16>  b16;
    bit<8>   a8;
    bit<8>   _pad;
    bit<128> a128;
}

struct headers_t {
    keys_t keys;
}

struct metadata_t {
}

parser TablesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.keys);
        transition accept;
    }
}

control TablesVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control TablesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(port_t port, mac_t address) {
        std.egress_spec = port;
        hdr.keys.a48 = address;
    }

    table exact {
        key = {
            hdr.keys.a48: exact;
        }
        actions = {
            forward;
            NoAction;
        }
        default_action = NoAction();
        size = 1048576;
    }

    table lpm_32 {
        key = {
            hdr.keys.a32: lpm;
        }
        actions = {
            forward;
            NoAction;
        }
        default_action = NoAction();
        size = 1048576;
    }

    table lpm_128 {
        key = {
            hdr.keys.a128: lpm;
        }
        actions = {
            forward;
            NoAction;
        }
        default_action = NoAction();
        size = 1048576;
    }

    table ternary {
        key = {
            hdr.keys.a32: ternary;
            hdr.keys.b32: ternary;
            hdr.keys.a16: ternary;
            hdr.keys.b16: ternary;
            hdr.keys.a8:  ternary;
        }
        actions = {
            forward;
            NoAction;
        }
        default_action = NoAction();
        size = 131072;
    }

    table range {
        key = {
            hdr.keys.a16: range;
        }
        actions = {
            forward;
            NoAction;
        }
        default_action = NoAction();
        size = 16384;
    }

    apply {
        exact.apply();
        lpm_32.apply();
        lpm_128.apply();
        ternary.apply();
        range.apply();
    }
}

control TablesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
    }
}

control TablesComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control TablesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.keys);
    }
}

V1Switch(TablesParser(), TablesVerifyChecksum(), TablesIngress(), TablesEgress(), TablesComputeChecksum(),
         TablesDeparser()) main;
