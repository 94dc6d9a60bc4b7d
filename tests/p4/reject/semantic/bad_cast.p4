#include <core.p4>
type bool flag_t;
type bit<8> port_t;
type port_t inner_t;
enum bit<8> kind_t { a = 1 }
enum bit<1> one_t { a = 1 }
const port_t PORT = (port_t) 8w5;
const int NUMBER = (int) PORT;
control C(inout bit<8> x) {
    int<16> a;
    apply {
        x = (bit<8>) a;
        bool b = (bool) x;
        // `type` and `enum` add casts between them and their basis alone.
        flag_t f = (flag_t) 5;
        f = (flag_t) 1;
        inner_t i = (inner_t) 5;
        i = 5;
        kind_t k = (kind_t) 16w5;
        one_t o = (one_t) true;
        b = 1;
        b = (bool) 2;
        // The list of casts has no errors and tuples, even to their own types.
        error e = (error) error.NoError;
        tuple<bit<8>> t = (tuple<bit<8>>) { 1 };
    }
}
