#include <core.p4>
header H {
    varbit<16> a;
    varbit<16> b;
}
