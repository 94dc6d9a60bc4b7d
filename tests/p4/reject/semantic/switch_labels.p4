#include <core.p4>
control C(inout bit<8> x) {
    apply {
        switch (x) {
            1: {
            }
            1: {
            }
            x: {
            }
            default: {
            }
        }
    }
}
