// The switch's agent keeps a register with the state of each port; all ports of this switch are up.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> port;
    bit<8> state;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    @port_state register<bit<1>>(16) ports;

    apply {
        bit<1> up;
        ports.read(up, (bit<32>)hdr.data.port);
        hdr.data.state = (bit<8>)up;
        ports.write((bit<32>)hdr.data.port, 0);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
