#include <core.p4>
enum bool E {
    A = true
}
