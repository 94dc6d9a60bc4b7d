// Types whose values the controller knows by other names.

#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/port", string)
type bit<9> port_t;

@p4runtime_translation("example.org/vrf", string)
type bit<4> vrf_t;

@p4runtime_translation("example.org/zone", 32)
type bit<8> zone_t;

header h_t {
    bit<32> flow;
    bit<8>  zone;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    vrf_t  vrf;
    zone_t zone;
}

parser TranslatedParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        meta.zone = (zone_t) hdr.h.zone;
        transition accept;
    }
}

control TranslatedVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control TranslatedIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action_selector(HashAlgorithm.crc32, 8, 32) next_hops;

    action set_vrf(vrf_t vrf) {
        meta.vrf = vrf;
    }

    action forward(port_t port) {
        standard.egress_spec = (bit<9>) port;
    }

    table zones {
        key = { meta.zone: exact; }
        actions = { set_vrf; NoAction; }
        default_action = NoAction();
    }

    table routes {
        key = {
            meta.vrf: exact;
            hdr.h.flow: lpm;
        }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }

    table spread {
        key = {
            meta.vrf: optional;
            hdr.h.flow: selector;
        }
        actions = { forward; }
        implementation = next_hops;
    }

    apply {
        zones.apply();
        if (!routes.apply().hit) {
            spread.apply();
        }
    }
}

control TranslatedEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control TranslatedComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control TranslatedDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

V1Switch(TranslatedParser(), TranslatedVerifyChecksum(), TranslatedIngress(), TranslatedEgress(),
         TranslatedComputeChecksum(), TranslatedDeparser()) main;
