// Translated types in every kind of match and in the controller's headers, as in programs for fixed-function switches.

#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("", string)
type bit<9> port_t;

@p4runtime_translation("", string)
type bit<4> vrf_t;

@p4runtime_translation("example.org/zone", 32)
type bit<8> zone_t;

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    @hidden bit<7> padding;
    zone_t zone;
}

@controller_header("packet_out")
header packet_out_t {
    @hidden bit<7> padding;
    port_t egress_port;
}

header h_t {
    bit<8> vrf;
    bit<8> zone;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    h_t h;
}

struct metadata_t {
    vrf_t  vrf;
    zone_t zone;
}

parser MatchesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            510: from_controller;
            default: data;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition data;
    }
    state data {
        packet.extract(hdr.h);
        meta.vrf = (vrf_t) hdr.h.vrf[3:0];
        meta.zone = (zone_t) hdr.h.zone;
        transition accept;
    }
}

control MatchesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control MatchesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action forward(port_t port) {
        standard.egress_spec = (bit<9>) port;
    }

    table by_ternary {
        key = { meta.vrf: ternary; meta.zone: ternary; }
        actions = { forward; NoAction; }
    }

    table by_lpm {
        key = { meta.zone: lpm; }
        actions = { forward; NoAction; }
    }

    table by_string_lpm {
        key = { meta.vrf: lpm; }
        actions = { forward; NoAction; }
    }

    table by_range {
        key = { meta.vrf: range; meta.zone: range; }
        actions = { forward; NoAction; }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = (bit<9>) hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            standard.egress_spec = 510;
            if (!by_ternary.apply().hit) {
                if (!by_lpm.apply().hit) {
                    if (!by_string_lpm.apply().hit) {
                        by_range.apply();
                    }
                }
            }
            if (standard.egress_spec == 510) {
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = (port_t) standard.ingress_port;
                hdr.packet_in.zone = meta.zone;
            }
        }
    }
}

control MatchesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control MatchesCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control MatchesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.h);
    }
}

V1Switch(MatchesParser(), MatchesVerify(), MatchesIngress(), MatchesEgress(), MatchesCompute(), MatchesDeparser()) main;
