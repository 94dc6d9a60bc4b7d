// Packet-in and packet-out headers, annotations and translated types.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    @id(2)
    bit<9> port;
    @hidden
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> port;
    bit<7> pad;
}

@p4runtime_translation("example.org/vrf", string)
type bit<12> vrf_t;

header h_t {
    bit<4> pad;
    vrf_t  vrf;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    h_t h;
}

struct metadata_t {
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
    @brief("Sets the VRF")
    action set_vrf(@id(5) vrf_t vrf) {
        hdr.h.vrf = vrf;
    }

    @hidden
    table secret {
        actions = {
            NoAction;
        }
    }

    @my_annotation("text", 5)
    @notes[1, "two", true]
    @more[limit = -1]
    @description("Finds the VRF")
    table vrfs {
        key = {
            hdr.h.vrf: optional @name("vrf");
        }
        actions = {
            set_vrf;
        }
            implementation = action_selector(HashAlgorithm.crc32, 128, 16);
    }

    apply {
        secret.apply();
        vrfs.apply();
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
