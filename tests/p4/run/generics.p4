// Generic structs through generic functions, with the type parameters found from the arguments; errors of the program
// that are declared before those of the core library; numbers without a width as values of a type of its own.

error { EarlyError }

#include <core.p4>
#include <v1model.p4>

type bit<8> vlan_t;
const vlan_t default_vlan = 5;

struct pair_t<T> {
    T first;
    T second;
}

header data_t {
    bit<8>  a;
    bit<16> b;
    bit<8>  error_number;
    vlan_t  vlan;
}

struct headers_t { data_t data; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        verify(hdr.data.a != 0, error.EarlyError);
        transition accept;
    }
}

pair_t<T> swap<T>(in pair_t<T> p) {
    return { p.second, p.first };
}

T first<T>(in pair_t<T> p) {
    return p.first;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        pair_t<bit<8>> small = { hdr.data.a, 7 };
        pair_t<bit<16>> large = { 0x1234, hdr.data.b };
        hdr.data.a = first(swap(small));
        hdr.data.b = first<bit<16>>(swap(large));
        if (sm.parser_error == error.EarlyError) {
            hdr.data.error_number = 1;
        } else if (sm.parser_error == error.NoError) {
            hdr.data.error_number = 2;
        }
        hdr.data.vlan = default_vlan;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
