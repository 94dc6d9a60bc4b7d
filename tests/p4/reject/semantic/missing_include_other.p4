#include <v1model.p4>
// The file of another architecture is no hint for a program that has one.
control I(inout psa_ingress_output_metadata_t o) {
    apply { }
}
