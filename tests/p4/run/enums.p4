// An enum without an underlying type: values compare, and a struct can hold one.

#include <core.p4>
#include <v1model.p4>

enum colour_t { red, green, blue }

header data_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t { data_t data; }
struct meta_t { colour_t colour; }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        colour_t other = colour_t.blue;
        if (hdr.data.a == 1) {
            meta.colour = colour_t.green;
        } else if (hdr.data.a == 2) {
            meta.colour = other;
        } else {
            meta.colour = colour_t.red;
        }
        if (meta.colour == colour_t.green) {
            hdr.data.b = 0x11;
        } else if (meta.colour != colour_t.red) {
            hdr.data.b = 0x22;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
