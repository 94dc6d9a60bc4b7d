#include <toy.p4>

header mark_t {
    bit<8> kind;
    bit<8> value;
}

struct headers_t {
    mark_t mark;
    mark_t inner;
}

parser P(packet_in packet, out headers_t headers) {
    state start {
        packet.extract(headers.mark);
        transition select(headers.mark.kind) {
            7: inner;
            default: accept;
        }
    }

    state inner {
        packet.extract(headers.inner);
        transition accept;
    }
}

control F(inout headers_t headers, in arrival_t arrival, out departure_t departure) {
    action leave(port_t port) {
        departure.port = port;
    }

    table kinds {
        key = { headers.mark.kind: exact; }
        actions = { leave; NoAction; }
        const entries = {
            1: leave(15);
            2: leave(2);
        }
        default_action = NoAction;
    }

    apply {
        departure.port = 9;
        if (arrival.parser_error != error.NoError) {
            departure.port = 3;
            return;
        }
        bit<8> ones = hash(headers.mark.value);
        departure.port = (port_t) ones;
        kinds.apply();
        if (headers.inner.isValid()) {
            headers.mark.setInvalid();
            headers.inner.value = hash(headers.inner.value) + (bit<8>) arrival.port;
        }
    }
}

control D(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

Toy(P(), F(), D()) main;
