// A label switching router (RFC 3031, 3032, 3443, 5462) whose recovery from failures happens in the data plane alone.
//
// An IPv4 packet is classified (FEC to NHLFE), a labelled one is looked up by its top label (ILM); both name a next hop label
// forwarding entry (NHLFE), and for protected LSPs a second one, which counts while the port of the first is down, or while a notice
// from a node further on says that the LSP has failed. Notices are made from the packets that the switch's agent generates when a
// port changes, and travel like any packet. The program knows no topology, and no name of a recovery mechanism: which NHLFE is
// the second one, and who is sent notices, makes the difference between them.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "../domain.p4"

// LSPs of the whole network: registers and counters are indexed by the LSP's number.
#ifndef LSPS
#define LSPS 1024
#endif

// The port at which the agent's packets enter. Nothing may be connected there.
#ifndef EVENT_PORT
#define EVENT_PORT 509
#endif

// Labels read and understood; all below them is payload. The stack has room for the labels that are pushed on top.
#define LABELS_READ 4
#define LABELS_ROOM 8

#define PORTS 512

// The time after which a packet for a port that is down makes another notice, in microseconds. Notices get lost, too.
#ifndef REMINDER_US
#define REMINDER_US 10000
#endif

typedef bit<20> label_t;
typedef bit<16> lsp_t;
typedef bit<16> nhlfe_t;
typedef bit<48> time_us_t;

const bit<16> ETHERTYPE_MPLS  = 0x8847;
const bit<16> ETHERTYPE_EVENT = 0x88B5;  // IEEE 802, local experimental EtherType 1

const label_t LABEL_GAL = 13;  // generic associated channel label (RFC 5586)

// Associated channel types 0x7FF8 to 0x7FFF are for experiments (IANA, G-ACh parameters).
const bit<16> CHANNEL_NOTICE = 0x7FF8;

const bit<32> INSTANCE_INGRESS_CLONE = 1;
const bit<32> INSTANCE_RECIRCULATED = 4;

// In the place of a second NHLFE: a node with no other way, that reminds the ingress of it.
const nhlfe_t NHLFE_REMIND = 0xFFFF;

// Ethernet, two labels, associated channel header, notice.
const bit<32> NOTICE_BYTES = 30;

header mpls_t {
    label_t label;
    bit<3>  tc;   // traffic class (RFC 5462)
    bit<1>  bos;  // bottom of stack
    bit<8>  ttl;
}

// RFC 5586, section 2.1: the header behind the GAL.
header ach_t {
    bit<4>  nibble;
    bit<4>  version;
    bit<8>  reserved;
    bit<16> channel_type;
}

const bit<8> NOTICE_FAILED   = 1;
const bit<8> NOTICE_REPAIRED = 2;

// As good as a notice, but never on the wire.
const bit<8> LOOPED_PACKET = 255;

header notice_t {
    bit<8>  kind;
    bit<8>  hop;  // of the LSP's path, the link that failed: 0 is the first
    bit<16> lsp;
}

const bit<8> EVENT_LOCAL       = 0;  // made by the agent: a port of this switch changed
const bit<8> EVENT_REMOTE_DOWN = 1;  // from the neighbour: it receives nothing from us
const bit<8> EVENT_REMOTE_UP   = 2;

header event_t {
    bit<16> port;
    bit<8>  kind;
    bit<8>  answer;  // 1: to a neighbour that receives again, and may have missed what we said before
}

struct headers_t {
    packet_out_t        packet_out;
    packet_in_t         packet_in;
    ethernet_t          ethernet;
    event_t             event;
    mpls_t[LABELS_ROOM] mpls;
    ach_t               ach;
    notice_t            notice;
    ipv4_t              ipv4;
    ipv4_options_t      ipv4_options;
}

// The results of ILM and FTN for a packet.
// The field list of packets that go round: other targets forget their ingress port.
const bit<8> ROUND = 1;

struct metadata_t {
    @field_list(ROUND) port_t from_port;
    lsp_t   lsp;
    nhlfe_t nhlfe;         // 0: none
    port_t  port;          // of the NHLFE
    nhlfe_t backup;        // 0: not protected
    bit<2>  merge_input;   // at a merge point that is not merge-capable: which input this is
    port_t  primary_port;  // there: the input port of the primary
    bit<1>  uniform;       // of a label that is popped here
    bit<1>  recirculate;
    bit<1>  event;
    bit<1>  event_remote;
    bit<1>  notify;        // the event is news
    bit<1>  port_up;
    bit<1>  port_usable;
    bit<3>  labels;        // that the parser has extracted
}

const bit<2> INPUT_PRIMARY = 1;
const bit<2> INPUT_BACKUP  = 2;

parser MplsParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_MPLS:  parse_mpls;
            ETHERTYPE_IPV4:  parse_ipv4;
            ETHERTYPE_EVENT: parse_event;
            default:         accept;
        }
    }

    state parse_event {
        packet.extract(hdr.event);
        transition accept;
    }

    state parse_mpls {
        packet.extract(hdr.mpls.next);
        meta.labels = meta.labels + 1;  // a select by lastIndex is more than some targets can do
        transition select(hdr.mpls.last.bos, hdr.mpls.last.label, meta.labels) {
            (1, LABEL_GAL, _):   parse_ach;
            (1, _, _):           parse_below_labels;
            (0, _, LABELS_READ): accept;
            default:             parse_mpls;
        }
    }

    state parse_ach {
        packet.extract(hdr.ach);
        transition select(hdr.ach.nibble, hdr.ach.channel_type) {
            (1, CHANNEL_NOTICE): parse_notice;
            default:             accept;
        }
    }

    state parse_notice {
        packet.extract(hdr.notice);
        transition accept;
    }

    // The label says what is below (RFC 3032, section 2.2); all of ours say IPv4, but labels of others pass through too.
    state parse_below_labels {
        transition select(packet.lookahead<bit<4>>()) {
            4:       parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl) {
            5:       accept;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, (bit<32>)(hdr.ipv4.ihl - 5) * 32);
        transition accept;
    }
}

// Below labels a header is carried, not read: its sender or the LSP's ingress has checked it.
control MplsVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUMS(verify_checksum, !hdr.mpls[0].isValid(), hdr.ipv4, hdr.ipv4_options);
    }
}

// Sets the TTL and adapts the checksum (RFC 1624, equation 3), so that a header that was damaged stays so.
control SetIpv4Ttl(inout ipv4_t ipv4, in bit<8> ttl) {
    apply {
        bit<16> before = ipv4.ttl ++ ipv4.protocol;
        bit<16> after = ttl ++ ipv4.protocol;
        bit<32> sum = (bit<32>)(~ipv4.hdr_checksum) + (bit<32>)(~before) + (bit<32>)after;
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = (sum & 0xFFFF) + (sum >> 16);
        ipv4.hdr_checksum = ~(bit<16>)sum;
        ipv4.ttl = ttl;
    }
}

#include "recovery.p4"

control MplsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) malformed;
    counter(1, CounterType.packets) unknown_label;
    counter(1, CounterType.packets) no_nhlfe;
    counter(LSPS, CounterType.packets) ttl_expired;
    counter(LSPS, CounterType.packets_and_bytes) lsp_traffic;
    counter(LSPS, CounterType.packets_and_bytes) looped;

    LeadsToDomain() leads_to_domain;
    CountRefused() count_refused;
    PortState() port_state;
    RemoteDefect() remote_defect;
    Reminders() reminders;
    MergePoint() merge_point;
    Protection() protection;
    Notices() notices;
    SetIpv4Ttl() set_ipv4_ttl;

    bit<1> reverse = 0;
    bit<1> notify_by_loop = 0;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // To the controller, as it arrived.
    action punt() {
        standard_metadata.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = meta.from_port;
        hdr.packet_in._pad = 0;
    }

    // ---- Incoming label map ----

    // port is the NHLFE's; backup is the NHLFE in its place, or 0.
    action label_switch(lsp_t lsp, nhlfe_t nhlfe, port_t port, nhlfe_t backup) {
        meta.lsp = lsp;
        meta.nhlfe = nhlfe;
        meta.port = port;
        meta.backup = backup;
    }

    // At a merge point that is not merge-capable. input is INPUT_PRIMARY or INPUT_BACKUP.
    action merge_switch(lsp_t lsp, nhlfe_t nhlfe, port_t port, nhlfe_t backup, bit<2> input, port_t primary_port) {
        label_switch(lsp, nhlfe, port, backup);
        meta.merge_input = input;
        meta.primary_port = primary_port;
    }

    // The end of an LSP whose last label arrives here.
    action pop(lsp_t lsp, bit<1> uniform) {
        meta.lsp = lsp;
        meta.uniform = uniform;
    }

    action merge_pop(lsp_t lsp, bit<1> uniform, bit<2> input, port_t primary_port) {
        pop(lsp, uniform);
        meta.merge_input = input;
        meta.primary_port = primary_port;
    }

    // The end of the reverse LSP at the ingress of lsp: notices, and packets that came back and go on by nhlfe.
    // notify: such a packet is as good as a notice.
    action reverse_end(lsp_t lsp, nhlfe_t nhlfe, bit<1> notify) {
        meta.lsp = lsp;
        meta.nhlfe = nhlfe;
        reverse = 1;
        notify_by_loop = notify;
    }

    table ilm {
        key = {
            hdr.mpls[0].label: exact @name("label");
        }
        actions = {
            label_switch;
            merge_switch;
            pop;
            merge_pop;
            reverse_end;
            punt;
            drop;
        }
        default_action = drop();
        size = 65536;
    }

    // ---- FEC to NHLFE ----

    action bind(lsp_t lsp, nhlfe_t nhlfe, port_t port, nhlfe_t backup) {
        label_switch(lsp, nhlfe, port, backup);
    }

    // Plain IPv4, to a host or to a router without labels.
    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
    }

    table ftn {
        key = {
            meta.from_port:    ternary @name("ingress_port");
            hdr.ipv4.src_addr: ternary;
            hdr.ipv4.dst_addr: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.diffserv: ternary;
        }
        actions = {
            bind;
            forward;
            drop;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 4096;
    }

    table ftn_lpm {
        key = {
            hdr.ipv4.dst_addr: lpm;
        }
        actions = {
            bind;
            forward;
            punt;
            drop;
        }
        default_action = drop();
        size = 65536;
    }

    // ---- Next hop label forwarding entries ----

    label_t label = 0;
    bit<8> label_ttl = 0;
    bit<1> replace_top = 0;
    bit<3> depth = 0;
    label_t label2 = 0;
    label_t label3 = 0;
    label_t label4 = 0;
    bit<8> ttl2 = 0;
    bit<8> ttl3 = 0;
    bit<8> ttl4 = 0;

    action swap(label_t out_label, port_t port, mac_t src_mac, mac_t dst_mac) {
        hdr.mpls[0].label = out_label;
        forward(port, src_mac, dst_mac);
    }

    // Penultimate hop popping.
    action php(bit<1> uniform, port_t port, mac_t src_mac, mac_t dst_mac) {
        meta.uniform = uniform;
        forward(port, src_mac, dst_mac);
    }

    // ttl is that of the pipe model; 0: the uniform model.
    action push(label_t out_label, bit<8> ttl, port_t port, mac_t src_mac, mac_t dst_mac) {
        label = out_label;
        label_ttl = ttl;
        depth = 1;
        forward(port, src_mac, dst_mac);
    }

    // Several labels, the first at the bottom. replace: the first is swapped with the packet's top label.
    action push_stack(bit<1> replace, bit<3> count, label_t l1, bit<8> t1, label_t l2, bit<8> t2, label_t l3, bit<8> t3,
                      label_t l4, bit<8> t4, port_t port, mac_t src_mac, mac_t dst_mac) {
        replace_top = replace;
        depth = count;
        label = l1;
        label_ttl = t1;
        label2 = l2;
        ttl2 = t2;
        label3 = l3;
        ttl3 = t3;
        label4 = l4;
        ttl4 = t4;
        forward(port, src_mac, dst_mac);
    }

    table nhlfes {
        key = {
            meta.nhlfe: exact @name("nhlfe");
        }
        actions = {
            swap;
            php;
            push;
            push_stack;
            forward;
            drop;
        }
        const default_action = drop();
        size = 65536;
    }

    // A label on top of another.
    action stack_label(label_t top, bit<8> ttl) {
        hdr.mpls.push_front(1);
        hdr.mpls[0].setValid();
        hdr.mpls[0].label = top;
        // allow(invalid): a second label goes on top of a first, which entries of push_stack have
        hdr.mpls[0].tc = hdr.mpls[1].tc;
        hdr.mpls[0].bos = 0;
        hdr.mpls[0].ttl = ttl;
    }

    // The first label of an IPv4 packet. The class selector is the traffic class.
    action label_ipv4(bit<8> ttl) {
        hdr.mpls[0].setValid();
        hdr.mpls[0].label = label;
        hdr.mpls[0].tc = hdr.ipv4.diffserv[7:5];
        hdr.mpls[0].bos = 1;
        hdr.mpls[0].ttl = ttl;
        hdr.ethernet.ether_type = ETHERTYPE_MPLS;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        if (standard_metadata.instance_type != INSTANCE_RECIRCULATED) {
            meta.from_port = standard_metadata.ingress_port;
        }

        // Labels, and words about ports, come from label switching routers: others are not ours (RFC 3031, section 3.1). What goes round was let
        // in, and the agent has a port of its own. A frame that is too short for what its type says is refused all the same.
        bool is_owned = hdr.ethernet.isValid()
            && (hdr.ethernet.ether_type == ETHERTYPE_MPLS && standard_metadata.instance_type != INSTANCE_RECIRCULATED
                || hdr.ethernet.ether_type == ETHERTYPE_EVENT && standard_metadata.ingress_port != EVENT_PORT);
        if (is_owned) {
            bool leads;
            leads_to_domain.apply(standard_metadata.ingress_port, leads);
            if (!leads) {
                count_refused.apply(standard_metadata.ingress_port);
                drop();
                exit;
            }
        }

        // ---- Ports that changed: one packet, copied for everybody who is to know ----
        if (hdr.event.isValid()) {
            port_t port = standard_metadata.ingress_port;
            bit<8> told = EVENT_LOCAL;
            bit<1> defect;
            bool changed;
            if (port == EVENT_PORT) {
                port = (port_t)hdr.event.port;
            } else {
                if (hdr.event.kind == EVENT_LOCAL) {
                    malformed.count(0);
                    drop();
                    exit;
                }
                told = hdr.event.kind;
                meta.event_remote = 1;
            }
            remote_defect.apply(port, told, defect, changed);
            if (meta.event_remote == 0 || changed) {
                bool due;
                reminders.apply(port, true, standard_metadata.ingress_global_timestamp, due);
                meta.notify = 1;
            }
            port_state.apply(port, meta.port_up);
            meta.port_usable = meta.port_up & ~defect;
            meta.event = 1;
            standard_metadata.mcast_grp = (bit<16>)port + 1;
            exit;
        }

        if (hdr.mpls[0].isValid()) {
            // ---- Labelled packets ----
            if (ilm.apply().miss) {
                unknown_label.count(0);
                exit;
            }
            if (hdr.packet_in.isValid()) {
                exit;
            }
            if (meta.merge_input != 0) {
                bit<1> up;
                bool accepted;
                bit<8> kind = 0;
                if (hdr.notice.isValid()) {
                    kind = hdr.notice.kind;
                }
                port_state.apply(meta.primary_port, up);
                merge_point.apply(meta.lsp, meta.merge_input, up, kind, accepted);
                if (!accepted) {
                    drop();
                    exit;
                }
            }
            if (reverse == 1) {
                bit<32> hops;
                if (hdr.ach.isValid()) {
                    if (hdr.notice.isValid()) {
                        notices.apply(meta.lsp, hdr.notice.kind, hdr.notice.hop, hops);
                    }
                    drop();
                    exit;
                }
                looped.count((bit<32>)meta.lsp);
                if (notify_by_loop == 1) {
                    notices.apply(meta.lsp, LOOPED_PACKET, 0, hops);
                }
            }
            if (meta.nhlfe == 0) {
                // The end of the LSP. The packet continues with the header below.
                if (hdr.mpls[0].ttl == 0) {
                    ttl_expired.count((bit<32>)meta.lsp);
                    drop();
                    exit;
                }
                lsp_traffic.count((bit<32>)meta.lsp);
                if (hdr.mpls[0].bos == 0) {
                    if (!hdr.mpls[1].isValid()) {
                        malformed.count(0);
                        drop();
                        exit;
                    }
                    if (meta.uniform == 1) {
                        hdr.mpls[1].ttl = hdr.mpls[0].ttl;
                        hdr.mpls[1].tc = hdr.mpls[0].tc;
                    }
                    hdr.mpls.pop_front(1);
                    meta.recirculate = 1;
                    standard_metadata.egress_spec = meta.from_port;
                    exit;
                }
                if (!hdr.ipv4.isValid() || standard_metadata.parser_error != error.NoError) {
                    malformed.count(0);
                    drop();
                    exit;
                }
                if (meta.uniform == 1) {
                    set_ipv4_ttl.apply(hdr.ipv4, hdr.mpls[0].ttl);
                }
                hdr.mpls.pop_front(1);
                hdr.ethernet.ether_type = ETHERTYPE_IPV4;
            } else {
                if (hdr.mpls[0].ttl <= 1) {
                    ttl_expired.count((bit<32>)meta.lsp);
                    drop();
                    exit;
                }
                hdr.mpls[0].ttl = hdr.mpls[0].ttl - 1;
            }
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed.count(0);
            drop();
            exit;
        }

        if (!hdr.mpls[0].isValid()) {
            // ---- IPv4 packets, from outside or from the end of an LSP ----
            if (!hdr.ipv4.isValid()) {
                drop();
                exit;
            }
            if (hdr.ipv4.ttl <= 1) {
                ttl_expired.count((bit<32>)meta.lsp);
                drop();
                exit;
            }
            meta.lsp = 0;
            if (!ftn.apply().hit) {
                ftn_lpm.apply();
            }
            if (hdr.packet_in.isValid()) {
                exit;
            }
            set_ipv4_ttl.apply(hdr.ipv4, hdr.ipv4.ttl - 1);
        }

        if (meta.nhlfe == 0) {
            exit;
        }
        if (reverse == 0) {
            lsp_traffic.count((bit<32>)meta.lsp);
        }
        if (meta.backup != 0) {
            bit<1> up;
            bit<1> defect;
            bool changed;
            bit<32> hops;
            port_state.apply(meta.port, up);
            remote_defect.apply(meta.port, EVENT_LOCAL, defect, changed);
            if (meta.backup == NHLFE_REMIND) {
                // There may be a signal towards the neighbour all the same: the packet itself goes on.
                bool due = false;
                if ((up & ~defect) == 0) {
                    reminders.apply(meta.port, false, standard_metadata.ingress_global_timestamp, due);
                }
                if (due) {
                    clone(CloneType.I2E, (bit<32>)meta.port + 1);
                }
            } else {
                notices.apply(meta.lsp, 0, 0, hops);
                protection.apply(meta.lsp, meta.backup, meta.nhlfe, up & ~defect, hops,
                                 standard_metadata.ingress_global_timestamp);
            }
        }

        switch (nhlfes.apply().action_run) {
            php: {
                // allow(invalid): entries with php are for labelled packets
                if (hdr.mpls[0].bos == 0) {
                    if (meta.uniform == 1) {
                        if (!hdr.mpls[1].isValid()) {
                            malformed.count(0);
                            drop();
                            exit;
                        }
                        hdr.mpls[1].ttl = hdr.mpls[0].ttl;
                        hdr.mpls[1].tc = hdr.mpls[0].tc;
                    }
                } else if (hdr.ipv4.isValid()) {
                    if (meta.uniform == 1) {
                        // allow(invalid): likewise
                        set_ipv4_ttl.apply(hdr.ipv4, hdr.mpls[0].ttl);
                    }
                    hdr.ethernet.ether_type = ETHERTYPE_IPV4;
                } else {
                    malformed.count(0);
                    drop();
                    exit;
                }
                hdr.mpls.pop_front(1);
            }
            push:
            push_stack: {
                if (replace_top == 1) {
                    hdr.mpls[0].label = label;
                } else if (hdr.mpls[0].isValid()) {
                    if (label_ttl == 0) {
                        label_ttl = hdr.mpls[0].ttl;
                    }
                    stack_label(label, label_ttl);
                } else {
                    if (label_ttl == 0) {
                        label_ttl = hdr.ipv4.ttl;
                    }
                    label_ipv4(label_ttl);
                }
                if (depth >= 2) {
                    if (ttl2 == 0) {
                        // allow(invalid): the first label is there: replaced or pushed
                        ttl2 = hdr.mpls[0].ttl;
                    }
                    stack_label(label2, ttl2);
                }
                if (depth >= 3) {
                    if (ttl3 == 0) {
                        // allow(invalid): likewise
                        ttl3 = hdr.mpls[0].ttl;
                    }
                    stack_label(label3, ttl3);
                }
                if (depth >= 4) {
                    if (ttl4 == 0) {
                        // allow(invalid): likewise
                        ttl4 = hdr.mpls[0].ttl;
                    }
                    stack_label(label4, ttl4);
                }
            }
            swap:
            forward: {
            }
            default: {
                no_nhlfe.count(0);
            }
        }
    }
}

control MplsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(LSPS, CounterType.packets) notices_sent;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action send_notice(lsp_t lsp, bit<8> hop, label_t label, mac_t src_mac, mac_t dst_mac) {
        hdr.event.setInvalid();
        hdr.ipv4.setInvalid();
        hdr.ipv4_options.setInvalid();
        hdr.mpls.pop_front(LABELS_ROOM);
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.ether_type = ETHERTYPE_MPLS;
        hdr.mpls[0].setValid();
        hdr.mpls[0].label = label;
        hdr.mpls[0].tc = 7;
        hdr.mpls[0].bos = 0;
        hdr.mpls[0].ttl = 255;
        hdr.mpls[1].setValid();
        hdr.mpls[1].label = LABEL_GAL;
        hdr.mpls[1].tc = 7;
        hdr.mpls[1].bos = 1;
        hdr.mpls[1].ttl = 1;
        hdr.ach.setValid();
        hdr.ach.nibble = 1;
        hdr.ach.version = 0;
        hdr.ach.reserved = 0;
        hdr.ach.channel_type = CHANNEL_NOTICE;
        hdr.notice.setValid();
        hdr.notice.hop = hop;
        hdr.notice.lsp = lsp;
        meta.lsp = lsp;
        truncate(NOTICE_BYTES);
    }

    // Tells the neighbour at the port that changed whether we receive what it sends.
    action send_remote_defect(mac_t src_mac, mac_t dst_mac) {
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ethernet.src_addr = src_mac;
        hdr.event.port = 0;
    }

    table notices {
        key = {
            standard_metadata.egress_rid: exact @name("instance");
        }
        actions = {
            send_notice;
            send_remote_defect;
            @defaultonly drop;
        }
        const default_action = drop();
        size = 65536;
    }

    apply {
        if (meta.recirculate == 1) {
            recirculate_preserving_field_list(ROUND);
        } else if (meta.event == 1 || standard_metadata.instance_type == INSTANCE_INGRESS_CLONE) {
            switch (notices.apply().action_run) {
                send_notice: {
                    hdr.notice.kind = NOTICE_FAILED;
                    if (meta.port_usable == 1) {
                        hdr.notice.kind = NOTICE_REPAIRED;
                    }
                    if (meta.notify == 1 || meta.event == 0) {
                        notices_sent.count((bit<32>)meta.lsp);
                    } else {
                        drop();
                    }
                }
                send_remote_defect: {
                    if (!hdr.event.isValid() || meta.event_remote == 1 && (hdr.event.kind != EVENT_REMOTE_UP || hdr.event.answer == 1)) {
                        drop();
                    }
                    hdr.event.answer = (bit<8>)meta.event_remote;
                    hdr.event.kind = EVENT_REMOTE_DOWN;
                    if (meta.port_up == 1) {
                        hdr.event.kind = EVENT_REMOTE_UP;
                    }
                }
                default: {
                }
            }
        }
    }
}

control MplsComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MplsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.event);
        packet.emit(hdr.mpls);
        packet.emit(hdr.ach);
        packet.emit(hdr.notice);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
    }
}

V1Switch(MplsParser(), MplsVerifyChecksum(), MplsIngress(), MplsEgress(), MplsComputeChecksum(), MplsDeparser()) main;
