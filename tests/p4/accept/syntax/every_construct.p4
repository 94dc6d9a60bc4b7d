// One of everything the grammar has, without any architecture.

error { BadLength, BadTag }
match_kind { exact, ternary, range }

const bit<8> LIMIT = 8w200;
const int BIG = 0xFFFF_FFFF_FFFF_FFFF_FFFF;
const bool DEBUG = false;

typedef bit<48> Mac;
type bit<9> Port;

enum Color { Red, Green, Blue }
enum bit<16> EtherType { Ipv4 = 0x0800, Ipv6 = 0x86DD }

@controller_header("packet_in")
header Ethernet { Mac dst; Mac src; EtherType type; }
header Options { bit<8> length; varbit<320> data; }
header_union Shim { Ethernet ethernet; Options options; }
struct Pair<A, B> { A first; B second; }
struct Headers { Ethernet ethernet; Options[4] options; Shim shim; }
struct Metadata { Port port; bit<8> count; Color color; tuple<bit<8>, bool> both; }

extern Source {
    Source();
    void read<T>(out T header_);
    T peek<T>();
    bit<32> left();
}
extern Adder<T> {
    Adder(T start);
    abstract T combine(in T a, in T b);
    T sum(in T value);
}
extern bit<16> checksum<T>(in T data);

bit<8> clamp(in bit<8> value, in bit<8> limit) {
    if (value > limit) {
        return limit;
    }
    return value;
}

action nothing() { }

parser Read(Source source, out Headers headers, inout Metadata metadata)(bit<8> most) {
    value_set<EtherType>(4) known;
    bit<8> rounds = 0;

    state start {
        source.read(headers.ethernet);
        transition select(headers.ethernet.type, source.peek<bit<8>>()) {
            (EtherType.Ipv4, _): options;
            (known, 1 .. 3): options;
            (EtherType.Ipv6, 0x80 &&& 0xF0): reject;
            default: accept;
        }
    }
    state options {
        source.read<Options>(headers.options.next);
        rounds = rounds + 1;
        transition select(rounds < most) {
            true: options;
            false: accept;
        }
    }
}

control Work(inout Headers headers, inout Metadata metadata) {
    Adder<bit<8>>(8w3) adder = {
        bit<8> combine(in bit<8> a, in bit<8> b) {
            return a |+| b;
        }
    };

    @name("forward")
    action send(Port port) {
        metadata.port = port;
    }
    action mark(in bit<8> value) {
        metadata.count = value;
    }

    table route {
        key = {
            headers.ethernet.dst : exact @name("dst");
            headers.ethernet.src[47:40] : ternary;
            metadata.count + 1 : range;
        }
        actions = {
            send;
            mark(5);
            @defaultonly nothing;
        }
        const default_action = nothing();
        size = 1024;
        entries = {
            const priority = 10: (1, 2 &&& 3, 4 .. 5) : send((Port) 9w1) @name("first");
            priority = (20): (2, _, default) : send((Port) 9w2);
        }
    }

    apply {
        Pair<bit<8>, bool> pair = { first = 1, ... };
        bit<16> wide = 8w1 ++ (headers.ethernet.isValid() ? 8w2 : 8w3);
        wide[7:0] = 8w4;
        wide <<= 1;
        wide |+|= checksum(headers.ethernet);
        if (route.apply().hit && !DEBUG) {
            metadata.count = adder.sum(clamp(metadata.count, LIMIT));
        } else if (pair.second || metadata.color == Color.Green) {
            headers.ethernet = {#};
        } else {
            exit;
        }
        switch (route.apply().action_run) {
            send:
            mark: { metadata.count -= 1; }
            default: { return; }
        }
        for (bit<8> i = 0, bit<8> j = 8; i < j; i += 1, j -= 1) {
            if (i == 3) { continue; }
            metadata.count = metadata.count ^ (i & j) >> 1;
        }
        for (bit<8> i in 1 .. LIMIT) {
            break;
        }
    }
}

parser ReadType(Source source, out Headers headers, inout Metadata metadata);
control WorkType<H, M>(inout H headers, inout M metadata);
package Device(ReadType reader, WorkType<Headers, Metadata> worker);

Device(Read(8w4), Work()) main;
