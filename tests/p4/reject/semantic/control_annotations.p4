// Annotations that the control plane would be told wrongly, or not at all.
#include <core.p4>
#include <v1model.p4>
@controller_header(packet_in)
header packet_in_t {
    bit<16> port;
}

@p4runtime_translation["example.org", 32]
type bit<9> a_t;
@p4runtime_translation("example.org", 65537)
type bit<9> b_t;
struct set_t {
    @match["ternary"] bit<8> a;
}
header h_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    bit<8> x;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h); transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @p4runtime_role(controller)
    @brief(1) @description(words)
    table t {
        key = { hdr.h.a: exact @id(two); }
        actions = { NoAction; }
    }

    @id(0x100000000)
    table u {
        key = { hdr.h.a: exact @id("2"); }
        actions = { NoAction; }
    }

    @p4runtime_role("a") @p4runtime_role("b")
    @max_group_size(2147483648) @selector_size_semantics("sum_of_packets")
    action_selector(HashAlgorithm.crc32, 16, 8) s;

    apply {
        t.apply();
        u.apply();
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
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
