// Every kind of type that P4Info tells, and what of it clients cannot use.
#include <core.p4>
#include <v1model.p4>

enum bit<8> Reason { Miss = 1, Expired = 0x7f, Policy = 255 }
enum bit<12> Colour { Red = 0xabc, Green = 1 }
enum Mode { Fast, Slow, Off }

type bit<9> plain_t;
@p4runtime_translation("example.org/port", 32) type bit<9> port_t;
@p4runtime_translation("", string) type bit<10> vrf_t;
@p4runtime_translation("example.org/zone", bit<16>) @note["of a type"] type bit<16> zone_t;

@controller_header("packet_in")
header packet_in_t {
    @id(3) port_t port;
    vrf_t vrf;
    @hidden bit<5> padding;
    Reason reason;
    Colour colour;
    bit<4> more;
}

@controller_header("packet_out")
header packet_out_t {
    plain_t port;
    bit<7> padding;
}

header part_t { bit<8> a; Reason reason; int<8> b; }
header other_t { bit<16> a; }
header_union either_t { part_t part; other_t other; }

struct inner_t { bit<4> low; Mode mode; Colour colour; bool flag; }
struct learnt_t { inner_t inner; Reason reason; error why; int<12> signed; plain_t plain; port_t port; zone_t zone; tuple<bit<3>, Mode> pair; }
struct with_header_t { part_t part; bit<8> x; }
struct key_t { @match(ternary) bit<8> a; bit<16> b; }
struct nested_key_t { key_t key; bit<8> c; }

struct headers_t { packet_in_t packet_in; packet_out_t packet_out; part_t part; other_t[2] others; either_t either; }
struct metadata_t { vrf_t vrf; port_t port; zone_t zone; Mode mode; error why; Reason reason; Colour colour; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<tuple<bit<8>, Reason>>(4) pairs;
    value_set<nested_key_t>(4) keys;
    value_set<bit<8>>(2) single;
    state start {
        packet.extract(hdr.part);
        transition select(hdr.part.a, hdr.part.reason) {
            pairs: more;
            default: next;
        }
    }
    state more {
        packet.extract(hdr.others.next);
        transition select(hdr.part.a, hdr.others[0].a, hdr.part.a) {
            keys: next;
            default: accept;
        }
    }
    state next {
        transition select(hdr.part.a) {
            single: accept;
            default: accept;
        }
    }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply {} }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<inner_t>(4) structs;
    register<Mode>(4) modes;
    register<Reason>(4) reasons;
    register<tuple<bit<4>, bool>>(2) tuples;
    register<int<12>>(2) numbers;
    register<port_t>(8) ports;
    counter(512, CounterType.packets_and_bytes) per_port;
    meter(512, MeterType.bytes) per_port_meter;
    direct_counter(CounterType.bytes) hits;
    direct_meter<bit<8>>(MeterType.packets) rate;
    @max_group_size(4) @selector_size_semantics("sum_of_members") @max_member_weight(3)
    action_selector(HashAlgorithm.crc16, 16, 8) by_members;
    @max_group_size(8) @selector_size_semantics("sum_of_weights")
    action_selector(HashAlgorithm.crc16, 16, 8) by_weights;

    action set(@id(7) port_t port, vrf_t vrf, Reason reason, @note("given") zone_t zone) {
        standard.egress_spec = (bit<9>) port;
        meta.vrf = vrf;
        meta.reason = reason;
        meta.zone = zone;
    }
    action mode(Mode mode, error why) { meta.mode = mode; meta.why = why; }
    action drop() { mark_to_drop(standard); }

    @brief("routes") @description("all \"of\" them\n") @structured[a=1, b="two", c=true] @listed[1, "x", false]
    table routes {
        key = {
            meta.vrf: ternary;
            meta.port: lpm;
            meta.zone: range;
            meta.reason: optional;
            hdr.part.a: exact @name("a") @id(9);
        }
        actions = { set; @defaultonly drop; @tableonly NoAction; }
        counters = hits;
        meters = rate;
        support_timeout = true;
        size = 16;
        default_action = drop();
    }

    table modes_table {
        key = { meta.mode: exact; meta.why: exact; }
        actions = { mode; NoAction; }
    }

    table spread {
        key = { meta.colour: exact; hdr.part.a: selector; }
        actions = { drop; NoAction; }
        implementation = by_members;
    }

    table spread_more {
        key = { hdr.part.b: exact; hdr.part.a: selector; }
        actions = { drop; NoAction; }
        implementation = by_weights;
    }

    table constant {
        key = { hdr.part.a: ternary; meta.mode: exact; }
        actions = { drop; NoAction; }
        const entries = { (1 &&& 3, Mode.Slow): drop(); }
        const default_action = NoAction();
    }

    apply {
        inner_t inner;
        structs.read(inner, 0);
        structs.write(1, inner);
        modes.read(meta.mode, 0);
        reasons.write(0, Reason.Expired);
        tuples.write(0, { 4w1, true });
        numbers.write(1, -3);
        ports.write(0, (port_t) 3);
        per_port.count(1);
        meta.why = standard.parser_error;
        learnt_t learnt = { inner, Reason.Policy, error.NoMatch, -5, (plain_t) 3, (port_t) 4, (zone_t) 5, { 3w1, Mode.Off } };
        digest<learnt_t>(1, learnt);
        digest<with_header_t>(2, { hdr.part, 8w1 });
        routes.apply();
        modes_table.apply();
        spread.apply();
        spread_more.apply();
        constant.apply();
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.packet_in); packet.emit(hdr.part); } }

@pkginfo(name="types.p4", version="1.2", organization="example.org", contact="a@example.org", url="https://example.org")
@platform_property(multicast_group_table_size=7, multicast_group_table_total_replicas=9, multicast_group_table_max_replicas_per_entry=11)
V1Switch(P(), V(), I(), E(), C(), D()) main;
