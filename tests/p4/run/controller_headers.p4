// packet_in and packet_out are headers like any other on the port of the controller.

#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> pad;
}

header data_t { bit<8> v; }

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    data_t       data;
}
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        transition select(sm.ingress_port) {
            510: parse_packet_out;
            default: parse_data;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_data;
    }
    state parse_data {
        packet.extract(hdr.data);
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.packet_out.isValid()) {
            sm.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = sm.ingress_port;
            hdr.packet_in.reason = 0x55;
            sm.egress_spec = 510;
        }
    }
}

#include "include/rest.p4"
