// Keys of every match kind, entries, priorities, bound arguments, scopes, switch on the action.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<16> c;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    bit<8> x;
    bit<32> addr;
    bool flag;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) hits;

    @name("give")
    action set(out bit<8> to, in bit<8> plus, bit<8> value) {
        to = value + plus;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table exact_one {
        key = {
            hdr.h.a: exact @name("first");
            hdr.h.isValid(): exact;
        }
        actions = {
            set(meta.x, hdr.h.b);
            @tableonly drop;
            @defaultonly NoAction;
        }
        const entries = {
            (1, true): set(10);
            (2, false): drop();
        }
        const default_action = NoAction;
        counters = hits;
        size = 64;
    }

    @id(0x99)
    table many {
        key = {
            meta.addr: lpm;
            hdr.h.b: ternary;
            hdr.h.c: range;
            meta.flag: optional;
            meta.x[3:0]: exact;
        }
        actions = {
            set(hdr.h.b, 1);
            drop;
        }
        entries = {
            priority = 1: (0x0a000000 &&& 0xff000000, 1 &&& 1, 5..10, true, 3): set(1);
            priority = 7: (_, _, 5, _, 4): set(2);
            (0x0a010000 &&& 0xffff0000, 3, _, false, 5): drop();
        }
        default_action = drop();
        support_timeout = true;
        largest_priority_wins = false;
        priority_delta = 10;
    }

    apply {
        if (exact_one.apply().hit) {
            meta.flag = true;
        } else {
            meta.addr = 1;
        }
        switch (many.apply().action_run) {
            set: {
                hdr.h.c = 1;
            }
            drop:
            default: {
                hdr.h.c = 2;
            }
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
