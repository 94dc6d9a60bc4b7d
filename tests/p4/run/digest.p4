// digest() sends a struct to the control plane with the values of that moment.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>  a;
    bit<48> b;
}

struct headers_t { data_t data; }
struct meta_t { }

struct learn_t {
    bit<48> address;
    bit<9>  port;
    bit<1>  odd;
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.data.a != 0) {
            digest<learn_t>(1, { hdr.data.b, sm.ingress_port, hdr.data.a[0:0] });
        }
        hdr.data.b = 0;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
