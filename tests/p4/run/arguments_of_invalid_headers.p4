// A parameter is a variable of its own: what a callee writes to it, it reads again, though the argument is a field of an invalid header,
// to which nothing can be written.

#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> c; }
struct headers_t { data_t data; data_t absent; }
struct meta_t { }

bit<8> written(inout bit<8> v) { v = v + 5; return v; }

control Written(out bit<8> v, out bit<8> r) { apply { v = 7; r = v; } }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Written() w;
    apply {
        hdr.data.a = written(hdr.absent.a);
        w.apply(hdr.absent.b, hdr.data.b);
        hdr.data.c = hdr.absent.a + hdr.absent.b;
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
