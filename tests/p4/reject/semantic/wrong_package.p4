#include <core.p4>
control D() {
    apply {
    }
}

control Any();

package Mine(Any a);

Mine(D()) main;
