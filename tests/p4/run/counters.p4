// Counters of packets, bytes and both; a packet counts with its length as it arrived.

#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> index;
}

struct headers_t { data_t data; }
struct meta_t { }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets) packets_only;
    counter(4, CounterType.bytes) bytes_only;
    counter(4, CounterType.packets_and_bytes) both;

    apply {
        packets_only.count((bit<32>)hdr.data.index);
        bytes_only.count((bit<32>)hdr.data.index);
        both.count((bit<32>)hdr.data.index);
        both.count(3);
        sm.egress_spec = 1;
    }
}

#include "include/rest.p4"
