// Flows: which packets begin one, by which rules, and which packets belong to one.
//
// A flow has a cell in one of four ways of a hash table. Its cell is free when its time is over. A new flow takes a free cell; without one, it
// takes that of the flow without assurance (half-open, or answered by nobody) whose time ends first. It never takes the cell of an
// assured flow. The hash has secret keys, so that nobody can choose addresses and ports that meet in the same cells.

#ifndef HOLDFAST_FIREWALL_FLOWS_P4
#define HOLDFAST_FIREWALL_FLOWS_P4

#include "packet.p4"
#include "reasons.p4"

// Cells in each of the four ways: 2^WAY_BITS, at most 2^16.
#ifndef WAY_BITS
#define WAY_BITS 16
#endif
#define CELLS (4 << WAY_BITS)

#ifndef RULES
#define RULES 32768
#endif
#ifndef LIMITS
#define LIMITS 1024
#endif
// Cells of the meter of new flows, by source; 2^SOURCE_BITS.
#ifndef SOURCE_BITS
#define SOURCE_BITS 12
#endif

// Flows as they are remembered. Those from ASSURED on have seen both ends.
typedef bit<4> flow_state_t;
const flow_state_t FREE         = 0;
const flow_state_t SYN_SENT     = 1;
const flow_state_t SYN_RECEIVED = 2;
const flow_state_t CLOSED       = 3;  // both ends have finished, or one has reset
const flow_state_t UDP_NEW      = 4;
const flow_state_t ECHO         = 5;
const flow_state_t OTHER_NEW    = 6;
const flow_state_t ASSURED      = 8;
const flow_state_t ESTABLISHED  = 8;
const flow_state_t CLOSING      = 9;  // one end has finished
const flow_state_t UDP_STREAM   = 10;
const flow_state_t OTHER_STREAM = 11;

// The register flow_keys: what a flow is. "First" is the end with the lower address, or of an echo the one that asks.
//   [383:256] first address, [255:128] second address, [127:112] first port, [111:96] second port, [95:88] protocol,
//   [87:56] epoch of the rule set that allowed it, [55:40] limit, [39:32] first zone, [31:24] second zone, [0] the first began it
#define KEY(record)   record[383:88]
#define EPOCH(record) record[87:56]
#define LIMIT(record) record[55:40]
#define ZONES(record) record[39:24]

// The register flow_states: how far a flow is. Of each end of TCP: the number after the highest sent, the highest that the other end
// takes, the highest that it has acknowledged, and the window scale.
//   [255:208] when it ends, microseconds; [207:204] state; [203] the first has finished, [202] the second;
//   [199:100] the first: end [99:68], limit [67:36], acknowledged [35:4], scale [3:0]; [99:0] the second
#define EXPIRES(state) state[255:208]
#define CODE(state)    state[207:204]

#define IS_LIVE(state) (CODE(state) != FREE && now <= EXPIRES(state))

// Whether a sequence number is not behind another (RFC 9293, section 3.4).
#define NOT_AFTER(a, b) (((b) - (a))[31:31] == 0)

#define CELL(way) ((bit<32>)(bit<WAY_BITS>)(place + way * step) + (way << WAY_BITS))

#define LOOK_INTO(way) \
    if (!found) { \
        cell = CELL(way); \
        flow_keys.read(record, cell); \
        if (KEY(record) == key) { \
            flow_states.read(state, cell); \
            found = IS_LIVE(state); \
        } \
    }

#define OFFER(way) \
    if (!free) { \
        flow_states.read(state, CELL(way)); \
        if (!IS_LIVE(state)) { \
            free = true; \
            cell = CELL(way); \
        } else if (CODE(state) < ASSURED && EXPIRES(state) < soonest) { \
            soonest = EXPIRES(state); \
            cell = CELL(way); \
        } \
    }

// The keys of the hash, and which rule set is active. Read once for each packet, so that no packet is judged by two.
struct settings_t {
    bit<1>  is_active;
    bit<1>  judges_again;  // flows that an earlier rule set has allowed
    bit<32> epoch;         // the generation of rules is its last bit
    bit<64> k0;
    bit<64> k1;
    bit<64> k2;
    bit<64> k3;
    bit<64> k4;
    bit<64> k5;
    bit<64> k6;
    bit<64> k7;
    bit<64> k8;
    bit<64> k9;
    bit<64> k10;
}

control JudgeFlow(in metadata_t meta, in settings_t settings, in bool is_ipv6, in bit<8> from_zone, in bit<8> to_zone, in bit<1> only_replies,
                  in bit<32> payload, in bit<48> now, out reason_t reason) {
    register<bit<384>>(CELLS) flow_keys;
    register<bit<256>>(CELLS) flow_states;
    // Microseconds without a packet after which a flow ends, by its state.
    register<bit<48>>(16) timeouts;
    direct_counter(CounterType.packets) rule_hits;
    meter(LIMITS, MeterType.packets) packet_limits;
    meter(LIMITS, MeterType.bytes) byte_limits;
    meter(1 << SOURCE_BITS, MeterType.packets) new_flows;
    counter(1, CounterType.packets) displaced;  // flows without assurance that lost their cells

    // The beginning of the flow, as rules see it.
    bit<128> rule_src = 0;
    bit<128> rule_dst = 0;
    bit<16>  rule_src_port = 0;
    bit<16>  rule_dst_port = 0;
    bit<8>   rule_from = 0;
    bit<8>   rule_to = 0;
    bit<1>   generation = 0;
    bit<1>   rule_ipv6 = 0;
    bit<8>   rule_protocol = 0;
    bool     allowed = false;
    bit<16>  limit = 0;

    // `limit`: the meters that all packets of the flow go through; 0 for none.
    action allow(bit<16> number) {
        allowed = true;
        limit = number;
    }

    action deny() { }

    table rules {
        key = {
            generation:    exact   @name("generation");
            rule_from:     ternary @name("from_zone");
            rule_to:       ternary @name("to_zone");
            rule_ipv6:     ternary @name("is_ipv6");
            rule_src:      ternary @name("src_addr");
            rule_dst:      ternary @name("dst_addr");
            rule_protocol: ternary @name("protocol");
            rule_src_port: range   @name("src_port");
            rule_dst_port: range   @name("dst_port");
        }
        actions = {
            allow;
            deny;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        counters = rule_hits;
        size = RULES;
    }

    apply {
        reason = PASSES;
        bool related = meta.kind == KIND_ERROR;
        bool is_tcp = meta.kind == KIND_TCP;
        bool syn = meta.flags & TCP_SYN != 0;
        bool acks = meta.flags & TCP_ACK != 0;
        bool rst = meta.flags & TCP_RST != 0;
        bool opens = is_tcp && meta.flags & TCP_CONTROL == TCP_SYN;

        // The flow's name is the same for packets of both directions.
        bool reversed = meta.is_echo == 1 ? meta.is_reply == 1 : meta.src > meta.dst;
        bit<296> key;
        if (meta.is_echo == 1) {
            key = reversed ? meta.dst ++ meta.src ++ meta.src_port ++ 16w0 ++ meta.protocol
                           : meta.src ++ meta.dst ++ meta.src_port ++ 16w0 ++ meta.protocol;
        } else {
            key = reversed ? meta.dst ++ meta.src ++ meta.dst_port ++ meta.src_port ++ meta.protocol
                           : meta.src ++ meta.dst ++ meta.src_port ++ meta.dst_port ++ meta.protocol;
        }

        // Strongly universal in its higher half ("multilinear-HM" of Lemire and Kaser, 2014).
        bit<64> sum = (settings.k0 + (bit<64>)key[295:264]) * (settings.k1 + (bit<64>)key[263:232]) +
                      (settings.k2 + (bit<64>)key[231:200]) * (settings.k3 + (bit<64>)key[199:168]) +
                      (settings.k4 + (bit<64>)key[167:136]) * (settings.k5 + (bit<64>)key[135:104]) +
                      (settings.k6 + (bit<64>)key[103:72]) * (settings.k7 + (bit<64>)key[71:40]) +
                      (settings.k8 + (bit<64>)key[39:8]) * (settings.k9 + (bit<64>)key[7:0]) + settings.k10;
        bit<32> place = sum[63:32];
        bit<32> step = (bit<32>)sum[63:48] | 1;

        bool found = false;
        bit<32> cell = 0;
        bit<384> record = 0;
        bit<256> state = 0;
        LOOK_INTO(0)
        LOOK_INTO(1)
        LOOK_INTO(2)
        LOOK_INTO(3)

        // An error travels against the packet that it is about.
        bit<8> src_zone = related ? to_zone : from_zone;
        bit<8> dst_zone = related ? from_zone : to_zone;
        bit<16> zones = reversed ? dst_zone ++ src_zone : src_zone ++ dst_zone;

        bool begins = !found || opens && CODE(state) == CLOSED;
        bool again = !begins && settings.judges_again == 1 && EPOCH(record) != settings.epoch;
        bool by_first = begins ? !reversed : record[0:0] == 1;  // who began it
        if (begins) {
            if (related || meta.kind == KIND_ECHO_REPLY) {
                reason = ICMP_UNRELATED;
            } else if (is_tcp && !opens) {
                reason = TCP_NO_STATE;
            } else if (only_replies == 1) {
                reason = REPLY_ONLY;
            }
        } else if (ZONES(record) != zones) {
            reason = WRONG_ZONE;
        } else {
            limit = LIMIT(record);
        }

        if (reason == PASSES && (begins || again)) {
            generation = settings.epoch[0:0];
            rule_ipv6 = is_ipv6 ? 1w1 : 1w0;
            rule_protocol = meta.protocol;
            if (by_first) {
                rule_src = key[295:168];
                rule_dst = key[167:40];
                rule_from = zones[15:8];
                rule_to = zones[7:0];
            } else {
                rule_src = key[167:40];
                rule_dst = key[295:168];
                rule_from = zones[7:0];
                rule_to = zones[15:8];
            }
            if (meta.is_echo == 0) {
                rule_src_port = by_first ? key[39:24] : key[23:8];
                rule_dst_port = by_first ? key[23:8] : key[39:24];
            }
            bool ruled = rules.apply().hit;
            if (!allowed) {
                reason = ruled ? DENIED : NO_RULE;
                if (again) {
                    flow_states.write(cell, 0);
                }
            } else if (begins) {
                bit<2> colour;
                bit<64> of_source = (settings.k0 + (bit<64>)rule_src[127:96]) * (settings.k1 + (bit<64>)rule_src[95:64]) +
                                    (settings.k2 + (bit<64>)rule_src[63:32]) * (settings.k3 + (bit<64>)rule_src[31:0]);
                new_flows.execute_meter((bit<32>)of_source[63:64 - SOURCE_BITS], colour);
                if (colour == V1MODEL_METER_COLOR_RED) {
                    reason = FLOW_RATE;
                }
            }
        }

        if (reason == PASSES && begins) {
            if (!found) {
                bool free = false;
                bit<48> soonest = 0xffffffffffff;
                OFFER(0)
                OFFER(1)
                OFFER(2)
                OFFER(3)
                if (!free) {
                    if (soonest == 0xffffffffffff) {
                        reason = TABLE_FULL;
                    } else {
                        displaced.count(0);
                    }
                }
            }
            state = 0;
        }

        // The two ends, of which one has sent this.
        bool by_sender = by_first != reversed;  // the sender began it
        bit<100> sender = reversed ? state[99:0] : state[199:100];
        bit<100> receiver = reversed ? state[199:100] : state[99:0];
        bit<2> finished = state[203:202];
        flow_state_t code = CODE(state);
        bool ends = false;

        if (reason != PASSES) {
            // Nothing more to ask.
        } else if (related) {
            if (meta.protocol == PROTOCOL_TCP && meta.seq - sender[35:4] > sender[99:68] - sender[35:4]) {
                reason = ICMP_UNRELATED;  // about nothing that is on its way (RFC 5927, section 4.1)
            }
        } else if (!is_tcp) {
            if (begins) {
                code = meta.kind == KIND_UDP ? UDP_NEW : meta.is_echo == 1 ? ECHO : OTHER_NEW;
            } else if (!by_sender && code == UDP_NEW) {
                code = UDP_STREAM;
            } else if (!by_sender && code == OTHER_NEW) {
                code = OTHER_STREAM;
            }
        } else {
            bit<32> after = meta.seq + payload + (syn ? 32w1 : 0) + (meta.flags & TCP_FIN != 0 ? 32w1 : 0);
            bit<32> ack_offset = meta.ack - receiver[35:4];
            bit<32> in_flight = receiver[99:68] - receiver[35:4];
            if (begins || code == SYN_SENT && by_sender && opens) {
                // A first segment, or another attempt.
                code = SYN_SENT;
                finished = 0;
                sender = after ++ after ++ meta.seq ++ meta.scale;
            } else if (code == SYN_SENT && by_sender) {
                if (rst && meta.seq == sender[99:68]) {
                    ends = true;
                } else {
                    reason = rst ? TCP_RESET : TCP_STATE;
                }
            } else if (code == SYN_SENT) {
                if (!acks || ack_offset == 0 || ack_offset > in_flight) {
                    reason = rst ? TCP_RESET : TCP_STATE;
                } else if (rst) {
                    ends = true;
                } else if (syn) {
                    code = SYN_RECEIVED;
                    bool scaled = meta.scale != UNSCALED && receiver[3:0] != UNSCALED;
                    sender = after ++ after ++ after ++ (scaled ? meta.scale : 4w0);
                    // The window of this segment is not scaled (RFC 7323, section 2.2).
                    receiver = receiver[99:68] ++ (meta.ack + (meta.window == 0 ? 32w1 : (bit<32>)meta.window)) ++ meta.ack ++
                               (scaled ? receiver[3:0] : 4w0);
                } else {
                    reason = TCP_STATE;
                }
            } else if (rst) {
                // What the receiver may take (RFC 5961, section 3.2): its next number is between those that it has acknowledged and
                // those that were sent. The flow stays for a while, in case that the receiver does not take it.
                if (meta.seq - sender[35:4] > sender[99:68] - sender[35:4]) {
                    reason = TCP_RESET;
                } else if (code == SYN_RECEIVED) {
                    ends = true;
                } else {
                    code = CLOSED;
                }
            } else if (syn && code == SYN_RECEIVED && by_sender && !acks) {
                if (after != sender[99:68]) {
                    reason = TCP_STATE;
                }
            } else if (syn && (by_sender || !acks || after != sender[99:68])) {
                reason = TCP_STATE;  // only the second segment may come again
            } else if (code == SYN_RECEIVED && !syn && (!by_sender || meta.ack != receiver[99:68])) {
                reason = TCP_STATE;  // the third is missing
            } else {
                // Between what the receiver takes and what it may have lost; acknowledges what was sent, and not long ago.
                bit<32> receiver_window = 32w0x10000 << receiver[3:0];
                bit<32> sender_window = 32w0x10000 << sender[3:0];
                if (!NOT_AFTER(after, sender[67:36]) || !NOT_AFTER(sender[99:68], meta.seq + receiver_window) ||
                    !NOT_AFTER(meta.ack, receiver[99:68]) || !NOT_AFTER(receiver[99:68], meta.ack + sender_window)) {
                    reason = TCP_WINDOW;
                } else {
                    bit<32> window = syn ? (bit<32>)meta.window : (bit<32>)meta.window << sender[3:0];
                    bit<32> takes = meta.ack + (window == 0 ? 32w1 : window);  // a closed window is probed with a byte
                    if (NOT_AFTER(sender[99:68], after)) {
                        sender[99:68] = after;
                    }
                    if (NOT_AFTER(receiver[67:36], takes)) {
                        receiver[67:36] = takes;
                    }
                    if (NOT_AFTER(receiver[35:4], meta.ack)) {
                        receiver[35:4] = meta.ack;
                    }
                    if (meta.flags & TCP_FIN != 0) {
                        finished = reversed ? finished | 1 : finished | 2;
                    }
                    if (!syn) {
                        code = finished == 0 ? ESTABLISHED : finished == 3 ? CLOSED : CLOSING;
                    }
                }
            }
        }

        if (reason == PASSES && limit != 0) {
            bit<2> packets;
            bit<2> bytes;
            packet_limits.execute_meter((bit<32>)limit, packets);
            byte_limits.execute_meter((bit<32>)limit, bytes);
            if (packets == V1MODEL_METER_COLOR_RED || bytes == V1MODEL_METER_COLOR_RED) {
                reason = RATE_LIMIT;
            }
        }

        if (reason == PASSES) {
            if (begins || again) {
                flow_keys.write(cell, key ++ settings.epoch ++ limit ++ zones ++ 23w0 ++ (by_first ? 1w1 : 1w0));
            }
            if (!related) {
                bit<48> timeout;
                timeouts.read(timeout, (bit<32>)code);
                if (ends) {
                    code = FREE;
                }
                bit<200> both = reversed ? receiver ++ sender : sender ++ receiver;
                flow_states.write(cell, (now + timeout) ++ code ++ finished ++ 2w0 ++ both);
            }
        }
    }
}

#endif
