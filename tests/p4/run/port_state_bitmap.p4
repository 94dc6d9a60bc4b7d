// A register of port states with cells of more than one bit: port n is bit n mod 12 of cell n / 12. All ports of this switch are up.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<4>  pad;
    bit<12> first;
    bit<4>  more;
    bit<12> last;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    @port_state register<bit<12>>(3) ports;

    apply {
        ports.read(hdr.data.first, 0);
        ports.read(hdr.data.last, 2);
        ports.write(0, 0);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
