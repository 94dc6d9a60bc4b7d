/* A toy architecture: one pipeline, which filters packets. */

#include <core.p4>

typedef bit<4> port_t;

struct arrival_t {
    port_t port;
    error parser_error;
}

/* A packet that is to leave at port 15 is dropped. */
struct departure_t {
    port_t port;
}

/* The number of ones in the value. */
extern bit<8> hash(in bit<8> value);

parser ToyParser<H>(packet_in packet, out H headers);
control ToyFilter<H>(inout H headers, in arrival_t arrival, out departure_t departure);
control ToyDeparser<H>(packet_out packet, in H headers);
package Toy<H>(ToyParser<H> parser_, ToyFilter<H> filter_, ToyDeparser<H> deparser_);
