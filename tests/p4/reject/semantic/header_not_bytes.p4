#include <core.p4>
header H {
    bit<3> a;
    bit<7> b;
}
