// Which copies are passed on: the acceptance algorithms of 1+1 protection, and what they count. Included by protect.p4 and rtag.p4,
// which know where a sequence number comes from and what becomes of the packet; here are only numbers.
//
// Words and rules are those of IEEE 802.1CB, 7.4.3 (RecovSeqNum is last_accepted_sn, SequenceHistory is history), but for the
// window, which is that of P4-Protect. Time is looked at when a copy comes: a reset that is due happens before it is judged.

#ifndef HOLDFAST_ACCEPTANCE_P4
#define HOLDFAST_ACCEPTANCE_P4

// Width of the sequence number space. The field on the wire may be wider; smaller spaces are for tests.
#ifndef SN_BITS
#define SN_BITS 32
#endif

// Bits of a connection's history: the longest that the controller can ask for. 2 to 128.
#ifndef HISTORY_BITS
#define HISTORY_BITS 64
#endif

#if HISTORY_BITS < 2 || HISTORY_BITS > 128
#error "HISTORY_BITS must be from 2 to 128"
#endif

// Connections that one node can be the egress of (and, in protect.p4, those that it can be the ingress of).
#ifndef CONNECTIONS
#define CONNECTIONS 8192
#endif

typedef bit<SN_BITS>      sn_t;
typedef bit<HISTORY_BITS> history_t;
typedef bit<48>           time_us_t;

// The path that a copy came by: 0 to 3.
typedef bit<2> path_t;
#define PATHS 4

// Half of the number space: the window's width, and the first difference that is negative.
const sn_t WINDOW = (sn_t)1 << (SN_BITS - 1);

// The paper's window as it is, without a reset. Costs one register.
const bit<2> ALGORITHM_PAPER_WINDOW = 0;
const bit<2> ALGORITHM_WINDOW       = 1;
const bit<2> ALGORITHM_VECTOR       = 2;
const bit<2> ALGORITHM_MATCH        = 3;

// The connection that judges a copy, and its algorithm.
struct acceptance_t {
    bit<32> connection;
    bit<2>  algorithm;
    bit<8>  history_length;    // of the vector algorithm: 2 to HISTORY_BITS numbers
    bit<32> reset_timeout_us;  // silence after which any number is taken; 0: never
    path_t  path;
}

// The number of bits that are set.
bit<64> ones(in bit<64> bits) {
    bit<64> sum = bits - ((bits >> 1) & 0x5555555555555555);
    sum = (sum & 0x3333333333333333) + ((sum >> 2) & 0x3333333333333333);
    sum = (sum + (sum >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (sum * 0x0101010101010101) >> 56;
}

bit<64> ones_of_history(in history_t history) {
#if HISTORY_BITS > 64
    return ones((bit<64>)history) + ones((bit<64>)(history >> 64));
#else
    return ones((bit<64>)history);
#endif
}

// VectorRecoveryAlgorithm (7.4.3.4) with a history that knows the last number, and `length` numbers in all.
control VectorRecovery(in sn_t sn, in bit<8> length, inout sn_t last, inout history_t seen, out bool passes,
                       out bool is_rogue, out bit<64> missing) {
    apply {
        history_t known = ((history_t)1 << length) - 1;
        sn_t ahead = sn - last;
        sn_t behind = last - sn;
        passes = false;
        is_rogue = false;
        missing = 0;
        if (ahead != 0 && ahead < WINDOW) {
            if ((bit<32>)ahead >= (bit<32>)length) {
                is_rogue = true;
            } else {
                passes = true;
                last = sn;
                // The numbers that leave the history: the highest `ahead` bits.
                history_t leaving = (seen & known) >> (length - (bit<8>)ahead);
                bit<64> passed_before = (bit<64>)leaving;
                if (ahead != 1) {
                    passed_before = ones_of_history(leaving);
                }
                missing = (bit<64>)ahead - passed_before;
                seen = (seen << (bit<8>)ahead) | 1;
            }
        } else if ((bit<32>)behind >= (bit<32>)length) {
            is_rogue = true;
        } else {
            history_t mark = (history_t)1 << (bit<8>)behind;
            passes = seen & mark == 0;
            seen = seen | mark;
        }
    }
}

// Decides whether a copy is passed, and counts it.
control Acceptance(in acceptance_t by, in sn_t sn, in time_us_t now, out bool passes) {
    register<sn_t>(CONNECTIONS) last_accepted_sn;
    // Bit i: whether i less than the last number has been passed. Bit 0 is set from the first accepted copy on, whatever the
    // algorithm, so zero means that any number is taken (TakeAny): to write zero here is to reset.
    register<history_t>(CONNECTIONS) history;
    register<time_us_t>(CONNECTIONS) last_accepted_time;
    // Numbers that left the history, or that the window jumped over, without having been passed.
    register<bit<64>>(CONNECTIONS) lost;
    // Copies taken whatever their number: the first of all, and the first after each reset.
    counter(CONNECTIONS, CounterType.packets) resets;
    // By connection and path. Rogue ones, too far from the last number, are among the discarded; those out of order are
    // passed, with another number than the next.
    counter(PATHS * CONNECTIONS, CounterType.packets_and_bytes) passed;
    counter(PATHS * CONNECTIONS, CounterType.packets_and_bytes) discarded;
    counter(PATHS * CONNECTIONS, CounterType.packets) rogue;
    counter(PATHS * CONNECTIONS, CounterType.packets) out_of_order;

    VectorRecovery() vector_recovery;

    apply {
        bit<32> cell = (by.connection << 2) + (bit<32>)by.path;
        sn_t last;
        last_accepted_sn.read(last, by.connection);
        sn_t ahead = sn - last;
        history_t seen = 1;
        bool take_any = false;
        if (by.algorithm != ALGORITHM_PAPER_WINDOW) {
            history.read(seen, by.connection);
            take_any = seen == 0;
            if (by.reset_timeout_us != 0) {
                time_us_t accepted_at;
                last_accepted_time.read(accepted_at, by.connection);
                take_any = take_any || now - accepted_at >= (time_us_t)by.reset_timeout_us;
            }
        }

        bool is_rogue = false;
        bit<64> missing = 0;
        if (take_any) {
            passes = true;
            ahead = 1;
            last = sn;
            history.write(by.connection, 1);
            resets.count(by.connection);
        } else if (by.algorithm == ALGORITHM_VECTOR) {
            vector_recovery.apply(sn, by.history_length, last, seen, passes, is_rogue, missing);
            history.write(by.connection, seen);
        } else if (by.algorithm == ALGORITHM_MATCH) {
            passes = ahead != 0;
            last = sn;
        } else {
            // Equations 1 to 3 of the paper in one: 1 to W after the last number, modulo the number space.
            passes = ahead - 1 < WINDOW;
            missing = (bit<64>)(ahead - 1);
            last = sn;
        }

        if (!passes) {
            discarded.count(cell);
            if (is_rogue) {
                rogue.count(cell);
            }
        } else {
            last_accepted_sn.write(by.connection, last);
            passed.count(cell);
            if (ahead != 1) {
                out_of_order.count(cell);
            }
            if (missing != 0) {
                bit<64> before;
                lost.read(before, by.connection);
                lost.write(by.connection, before + missing);
            }
            if (by.reset_timeout_us != 0) {
                last_accepted_time.write(by.connection, now);
            }
        }
    }
}

#endif
