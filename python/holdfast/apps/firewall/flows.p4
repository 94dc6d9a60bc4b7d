// Flows: which packets begin one, by which rules, and which packets belong to one.
//
// A flow has a cell in one of four ways of a hash table. Its cell is free when its time is over. A new flow takes a free cell; without one, it
// takes that of the flow without assurance (half-open, or answered by nobody) whose time ends first. If all four cells have assured
// flows, a source that has none of them takes one from the source that has most, if that has several: one source cannot fill the table.
// The hash has secret keys, so that nobody can choose addresses and ports that meet in the same cells.

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
// Cells of the meter of new flows, by source: 2^SOURCE_BITS for each zone. Zones whose numbers have the same last 3 bits share them.
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

// The register flow_keys: the flow's key, in words of 64 bits. "First" is the end with the lower address, or of an echo the one that asks.
//   [383:256] first address, [255:128] second address, [127:112] first port, [111:96] second port, [95:88] protocol, [87:64] zero,
//   [63:32] epoch of the rule set that allowed it, [31:16] limit, [15:8] first zone, [7:0] second zone
#define KEY(record)   record[383:64]
#define EPOCH(record) record[63:32]
#define LIMIT(record) record[31:16]
#define ZONES(record) record[15:0]

// The register flow_states: the progress of a flow. Of each end of TCP: the number after the highest sent, the highest that the other end
// takes, the highest that it has acknowledged, and the window scale.
//   [351:320] the number of an answer that does not fit, [319:288] the number of an attempt's first segment, [287:272] the numbers that it
//   takes (0: no attempt), [271:268] its scale, [267] the first sent it; [266] there is such an answer, [265] the first sent it; [264:256] zero;
//   [255:208] when it ends, microseconds; [207:204] state; [203] the first has finished, [202] the second; [201] the first began it;
//   [199:196] scale of the first, [195:192] of the second; [191:96] the first: sent, takes, acknowledged; [95:0] the second
// An attempt is the first segment of a connection in a flow that lives: an end has lost the connection (RFC 9293, section 3.5.1), or both
// begin it. It changes nothing until the other end answers it. An answer that does not fit tells, in a half-open flow and
// after an attempt, what an end knows of another connection; the other end then resets that with the number that the answer acknowledges.
#define ANSWERED(state)         state[351:320]
#define HAS_ANSWER(state)       state[266:266]
#define ANSWER_BY_FIRST(state)  state[265:265]
#define ATTEMPT_NUMBER(state)   state[319:288]
#define ATTEMPT_LENGTH(state)   state[287:272]
#define ATTEMPT_SCALE(state)    state[271:268]
#define ATTEMPT_BY_FIRST(state) state[267:267]
#define EXPIRES(state)  state[255:208]
#define CODE(state)     state[207:204]
#define BY_FIRST(state) state[201:201]

// The time that a flow has left, modulo 2^48 microseconds: the clock that programs see begins again after 8.9 years. What is over has
// nearly all of them left, and no flow has more than the longest timeout of a rule set.
#define LONGEST_US      48w10000000000000
#define LEFT(state)     (EXPIRES(state) - now)
#define IS_LIVE(state)  (CODE(state) != FREE && LEFT(state) <= LONGEST_US)

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
        } else if (CODE(state) < ASSURED && LEFT(state) < soonest) { \
            soonest = LEFT(state); \
            cell = CELL(way); \
        } \
    }

// The holder of a cell, who began its flow, and the time that the flow has left.
#define LOOK_AT_HOLDER(way, holder, left) \
    flow_keys.read(record, CELL(way)); \
    flow_states.read(state, CELL(way)); \
    bit<128> holder = share_of(BY_FIRST(state) == 1 ? record[383:256] : record[255:128]); \
    bit<48> left = LEFT(state);

#define TAKE_FROM_LARGEST(way, holder, left) { \
    bit<3> held = (holder == holder0 ? 3w1 : 0) + (holder == holder1 ? 3w1 : 0) + \
                  (holder == holder2 ? 3w1 : 0) + (holder == holder3 ? 3w1 : 0); \
    if (held > most || (held == most && most > 1 && left < soonest)) { \
        most = held; \
        soonest = left; \
        cell = CELL(way); \
    } \
}

// Whose share of the table a flow belongs to: an IPv4 address, or an IPv6 network of 64 bits, of which a host may have all addresses.
bit<128> share_of(in bit<128> source) {
    return source[127:32] == 96w0xffff ? source : source[127:64] ++ 64w0;
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
    register<bit<352>>(CELLS) flow_states;
    // Microseconds without a packet after which a flow ends, by its state.
    register<bit<48>>(16) timeouts;
    direct_counter(CounterType.packets) rule_hits;
    meter(LIMITS, MeterType.packets) packet_limits;
    meter(LIMITS, MeterType.bytes) byte_limits;
    meter(8 << SOURCE_BITS, MeterType.packets) new_flows;
    counter(1, CounterType.packets) displaced;  // flows without assurance that lost their cells
    counter(1, CounterType.packets) yielded;    // assured flows that lost theirs, to sources with fewer

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
        bit<128> first = reversed ? meta.dst : meta.src;
        bit<128> second = reversed ? meta.src : meta.dst;
        bit<16> first_port = reversed && meta.is_echo == 0 ? meta.dst_port : meta.src_port;
        bit<16> second_port = meta.is_echo == 1 ? 16w0 : (reversed ? meta.src_port : meta.dst_port);
        bit<320> key = first ++ second ++ first_port ++ second_port ++ meta.protocol ++ 24w0;

        // Strongly universal in its higher half ("multilinear-HM" of Lemire and Kaser, 2014).
        bit<64> sum = (settings.k0 + (bit<64>)first[127:96]) * (settings.k1 + (bit<64>)first[95:64]) +
                      (settings.k2 + (bit<64>)first[63:32]) * (settings.k3 + (bit<64>)first[31:0]) +
                      (settings.k4 + (bit<64>)second[127:96]) * (settings.k5 + (bit<64>)second[95:64]) +
                      (settings.k6 + (bit<64>)second[63:32]) * (settings.k7 + (bit<64>)second[31:0]) +
                      (settings.k8 + (bit<64>)(first_port ++ second_port)) * (settings.k9 + (bit<64>)meta.protocol) + settings.k10;
        bit<32> place = sum[63:32];
        bit<32> step = (bit<32>)sum[63:48] | 1;

        bool found = false;
        bit<32> cell = 0;
        bit<384> record = 0;
        bit<352> state = 0;
        LOOK_INTO(0)
        LOOK_INTO(1)
        LOOK_INTO(2)
        LOOK_INTO(3)

        // An error travels against the packet that it is about.
        bit<8> src_zone = related ? to_zone : from_zone;
        bit<8> dst_zone = related ? from_zone : to_zone;
        bit<16> zones = reversed ? dst_zone ++ src_zone : src_zone ++ dst_zone;

        bool begins = !found || (opens && CODE(state) == CLOSED);
        bool by_first = begins ? !reversed : (BY_FIRST(state) == 1);  // who began it
        bool attempts = opens && !begins && (CODE(state) != SYN_SENT || by_first == reversed);
        // Whether this answers an attempt of the receiver: the sender does not know the connection of before.
        bit<32> of_attempt = meta.ack - ATTEMPT_NUMBER(state);
        bool answers = is_tcp && acks && !begins && (ATTEMPT_BY_FIRST(state) == 1) == reversed &&
                       of_attempt != 0 && of_attempt <= (bit<32>)ATTEMPT_LENGTH(state);
        bool reopens = answers && syn;
        if (reopens) {
            by_first = reversed;
        }
        bool again = !begins && !attempts && !reopens && settings.judges_again == 1 && EPOCH(record) != settings.epoch;
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
        } else if (attempts && only_replies == 1) {
            reason = REPLY_ONLY;
        } else {
            limit = LIMIT(record);
        }

        if (reason == PASSES && (begins || attempts || reopens || again)) {
            bool ruled_by_first = attempts ? !reversed : by_first;
            generation = settings.epoch[0:0];
            rule_ipv6 = is_ipv6 ? 1w1 : 1w0;
            rule_protocol = meta.protocol;
            if (ruled_by_first) {
                rule_src = first;
                rule_dst = second;
                rule_from = zones[15:8];
                rule_to = zones[7:0];
            } else {
                rule_src = second;
                rule_dst = first;
                rule_from = zones[7:0];
                rule_to = zones[15:8];
            }
            if (meta.is_echo == 0) {
                rule_src_port = ruled_by_first ? first_port : second_port;
                rule_dst_port = ruled_by_first ? second_port : first_port;
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
                new_flows.execute_meter((bit<32>)(rule_from[2:0] ++ of_source[63:64 - SOURCE_BITS]), colour);
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
                    if (soonest != 0xffffffffffff) {
                        displaced.count(0);
                    } else {
                        bit<128> newcomer = share_of(rule_src);
                        bit<3> most = 1;
                        LOOK_AT_HOLDER(0, holder0, left0)
                        LOOK_AT_HOLDER(1, holder1, left1)
                        LOOK_AT_HOLDER(2, holder2, left2)
                        LOOK_AT_HOLDER(3, holder3, left3)
                        if (newcomer != holder0 && newcomer != holder1 && newcomer != holder2 && newcomer != holder3) {
                            TAKE_FROM_LARGEST(0, holder0, left0)
                            TAKE_FROM_LARGEST(1, holder1, left1)
                            TAKE_FROM_LARGEST(2, holder2, left2)
                            TAKE_FROM_LARGEST(3, holder3, left3)
                        }
                        if (most == 1) {
                            reason = TABLE_FULL;
                        } else {
                            yielded.count(0);
                        }
                    }
                }
            }
            state = 0;
        }

        // The two ends, of which one has sent this.
        bool by_sender = by_first != reversed;                          // the sender began it
        bit<32> sent = reversed ? state[95:64] : state[191:160];        // the number after the highest of the sender
        bit<32> may_send = reversed ? state[63:32] : state[159:128];    // the highest that the receiver takes
        bit<32> acked = reversed ? state[31:0] : state[127:96];         // the highest that the receiver has acknowledged
        bit<4> scale = reversed ? state[195:192] : state[199:196];
        bit<32> other_sent = reversed ? state[191:160] : state[95:64];  // the same of the receiver
        bit<32> other_may_send = reversed ? state[159:128] : state[63:32];
        bit<32> other_acked = reversed ? state[127:96] : state[31:0];
        bit<4> other_scale = reversed ? state[199:196] : state[195:192];
        bit<2> finished = state[203:202];
        bit<32> attempt_number = ATTEMPT_NUMBER(state);
        bit<16> attempt_length = ATTEMPT_LENGTH(state);
        bit<4> attempt_scale = ATTEMPT_SCALE(state);
        bit<1> attempt_by_first = ATTEMPT_BY_FIRST(state);
        flow_state_t code = CODE(state);
        bit<32> answered = ANSWERED(state);
        bit<1> has_answer = HAS_ANSWER(state);
        bit<1> answer_by_first = ANSWER_BY_FIRST(state);
        bool ends = false;
        bool refreshes = true;

        if (reason != PASSES) {
            // Nothing more to ask.
        } else if (related) {
            bool is_attempt = attempt_length != 0 && (attempt_by_first == 1) != reversed && meta.seq == attempt_number;
            if (meta.protocol == PROTOCOL_TCP && meta.seq - acked > sent - acked && !is_attempt) {
                reason = ICMP_UNRELATED;  // about nothing that is on its way (RFC 5927, section 4.1)
            }
        } else if (!is_tcp) {
            if (begins) {
                code = meta.kind == KIND_UDP ? UDP_NEW : (meta.is_echo == 1 ? ECHO : OTHER_NEW);
            } else if (!by_sender && code == UDP_NEW) {
                code = UDP_STREAM;
            } else if (!by_sender && code == OTHER_NEW) {
                code = OTHER_STREAM;
            }
        } else {
            bit<32> after = meta.seq + payload + (syn ? 32w1 : 0) + (meta.flags & TCP_FIN != 0 ? 32w1 : 0);
            if (reopens) {
                // The attempt is the first segment now.
                code = SYN_SENT;
                finished = 0;
                other_acked = attempt_number;
                other_sent = attempt_number + (bit<32>)attempt_length;
                other_scale = attempt_scale;
                attempt_length = 0;
                has_answer = 0;
            }
            bool answers_first = (code == SYN_SENT && !by_sender) || code == SYN_RECEIVED ||
                                 (attempt_length != 0 && (attempt_by_first == 1) == reversed);
            bool may_reset = code == SYN_SENT || code == SYN_RECEIVED || (attempt_length != 0 && (attempt_by_first == 1) != reversed);
            bit<32> ack_offset = meta.ack - other_acked;
            if (attempts) {
                // If its receiver knows a connection, it answers with what it knows of that (RFC 9293, section 3.10.7.4), which passes; the
                // sender then resets it, which passes too. A forged one harms nobody. Only a first segment that comes again refreshes.
                refreshes = code == SYN_RECEIVED && by_sender && after == sent;
                attempt_number = meta.seq;
                attempt_length = (bit<16>)(after - meta.seq);
                attempt_scale = meta.scale;
                attempt_by_first = reversed ? 1w0 : 1w1;
            } else if (answers && rst) {
                code = CLOSED;  // refused, by an end that knows no connection
                attempt_length = 0;
            } else if (begins || (code == SYN_SENT && by_sender && opens)) {
                // A first segment, or another attempt.
                code = SYN_SENT;
                finished = 0;
                sent = after;
                may_send = after;
                acked = meta.seq;
                scale = meta.scale;
            } else if (code == SYN_SENT && by_sender) {
                if (rst && meta.seq == sent) {
                    ends = true;
                } else {
                    reason = rst ? TCP_RESET : TCP_STATE;
                }
            } else if (code == SYN_SENT) {
                if (!acks || ack_offset == 0 || ack_offset > other_sent - other_acked) {
                    reason = rst ? TCP_RESET : TCP_STATE;
                } else if (rst) {
                    ends = true;
                } else if (syn) {
                    code = SYN_RECEIVED;
                    bool scaled = meta.scale != UNSCALED && other_scale != UNSCALED;
                    sent = after;
                    may_send = after;
                    acked = after;
                    scale = scaled ? meta.scale : 4w0;
                    // The window of this segment is not scaled (RFC 7323, section 2.2).
                    other_may_send = meta.ack + (meta.window == 0 ? 32w1 : (bit<32>)meta.window);
                    other_acked = meta.ack;
                    other_scale = scaled ? other_scale : 4w0;
                } else {
                    reason = TCP_STATE;
                }
            } else if (rst) {
                // A reset that the receiver may take (RFC 5961, section 3.2): its next number is between those that it has acknowledged and
                // those that were sent. The flow stays for a while, in case that the receiver does not take it.
                if (meta.seq - acked > sent - acked) {
                    reason = TCP_RESET;
                } else if (code == SYN_RECEIVED) {
                    ends = true;
                } else {
                    code = CLOSED;
                }
            } else if (syn && (by_sender || after != sent)) {
                reason = TCP_STATE;  // only the second segment may come again
            } else if (code == SYN_RECEIVED && !syn && (by_sender ? meta.ack != other_sent : (payload != 0 || meta.flags & TCP_FIN != 0))) {
                reason = TCP_STATE;  // the third is missing; until then the other end has only answers
            } else {
                // Between what the receiver takes and what it may have lost; acknowledges what was sent, and not long ago.
                bit<32> window = 32w0x10000 << scale;
                bit<32> other_window = 32w0x10000 << other_scale;
                if (!NOT_AFTER(after, may_send) || !NOT_AFTER(sent, meta.seq + other_window) ||
                    !NOT_AFTER(meta.ack, other_sent) || !NOT_AFTER(other_sent, meta.ack + window)) {
                    reason = TCP_WINDOW;
                } else {
                    bit<32> offered = syn ? (bit<32>)meta.window : (bit<32>)meta.window << scale;
                    bit<32> takes = meta.ack + (offered == 0 ? 32w1 : offered);  // a closed window is probed with a byte
                    sent = NOT_AFTER(sent, after) ? after : sent;
                    other_may_send = NOT_AFTER(other_may_send, takes) ? takes : other_may_send;
                    other_acked = NOT_AFTER(other_acked, meta.ack) ? meta.ack : other_acked;
                    if (meta.flags & TCP_FIN != 0) {
                        finished = reversed ? finished | 1 : finished | 2;
                    }
                    if (!syn && (code != SYN_RECEIVED || by_sender)) {
                        code = finished == 0 ? ESTABLISHED : (finished == 3 ? CLOSED : CLOSING);
                    }
                    if ((attempt_by_first == 1) != reversed) {
                        attempt_length = 0;  // the sender still has the connection: the attempt was forged, or late
                    }
                }
            }

            bool only_acks = acks && !rst && payload == 0 && meta.flags & TCP_FIN == 0;
            if (answers_first && only_acks && (reason == TCP_WINDOW || reason == TCP_STATE)) {
                // The answer of an end that has another connection (RFC 5961, section 4.2), or to an earlier first segment.
                reason = PASSES;
                refreshes = false;
                answered = meta.ack;
                has_answer = 1;
                answer_by_first = reversed ? 1w0 : 1w1;
            } else if (may_reset && reason == TCP_RESET && has_answer == 1 && (answer_by_first == 1) == reversed && meta.seq == answered) {
                reason = PASSES;
                refreshes = false;
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
            if (begins || reopens || again) {
                flow_keys.write(cell, key ++ settings.epoch ++ limit ++ zones);
            }
            if (!related) {
                bit<48> timeout;
                timeouts.read(timeout, (bit<32>)code);
                if (ends) {
                    code = FREE;
                }
                bit<1> began = by_first ? 1w1 : 1w0;
                bit<48> expires = refreshes ? now + timeout : EXPIRES(state);
                bit<96> attempt_word = answered ++ attempt_number ++ attempt_length ++ attempt_scale ++ attempt_by_first ++ has_answer ++
                                       answer_by_first ++ 9w0;
                bit<64> control_word = expires ++ code ++ finished ++ began ++ 1w0 ++
                                       (reversed ? other_scale ++ scale : scale ++ other_scale);
                bit<96> of_sender = sent ++ may_send ++ acked;
                bit<96> of_receiver = other_sent ++ other_may_send ++ other_acked;
                flow_states.write(cell, attempt_word ++ control_word ++ (reversed ? of_receiver ++ of_sender : of_sender ++ of_receiver));
            }
        }
    }
}

#endif
