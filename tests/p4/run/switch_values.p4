// switch on an expression, on a serializable enum, without default, nested.

#include <core.p4>
#include <v1model.p4>

enum bit<8> kind_t { a = 1, b = 2, c = 0xFF }

header data_t {
    bit<8> x;
    kind_t kind;
    bit<8> result;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        switch (hdr.data.x & 0xF) {
            0: { hdr.data.result = 0x10; }
            1:
            2: {
                switch (hdr.data.kind) {
                    kind_t.a: { hdr.data.result = 0x21; }
                    kind_t.c: { hdr.data.result = 0x2F; }
                }
            }
            15: { }
            default: { hdr.data.result = 0xDD; }
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
