// Writes to the variable of a `for ... in` are seen in the same round only: the next round has the next value of the range, the
// list or the stack.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> count;
    bit<8> seen;
    bit<8> last;
    bit<8> more;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action double(inout bit<8> x) {
        x = x + x;
    }

    apply {
        bit<8> high = hdr.data.last;
        hdr.data.seen = 0;
        // To the end of the type, from and to what is only known at run time, and out of order.
        for (bit<8> i in hdr.data.count .. high) {
            hdr.data.seen = hdr.data.seen + 1;
            i = 0;
            high = i;
        }
        hdr.data.last = 0;
        for (bit<8> i in 8w1 .. 8w4) {
            if (i == 2) {
                i = 100;
                continue;
            }
            double(i);
            hdr.data.last = hdr.data.last + i;
            i[7:4] = 0xf;
        }
        hdr.data.more = 0;
        for (bit<8> i in (list<bit<8>>) {3, 5, 7}) {
            i = i + 1;
            hdr.data.more = hdr.data.more + i;
            if (i == 6) {
                i = 200;
                for (bit<8> j in 8w0 .. 8w1) {
                    j = j + i;
                    i = j;
                }
                hdr.data.more = hdr.data.more ^ i;
            }
        }
        for (int<4> i in -4s2 .. 4s1) {
            if (i < 0) {
                hdr.data.more = hdr.data.more + 16;
            }
            i = 7;
        }
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
