#include <core.p4>
control D<T>(inout T x) {
    apply {
    }
}
