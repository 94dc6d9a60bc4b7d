// In-band Network Telemetry v2.1 on an IPv4 and IPv6 router: source, transit and sink of INT-MD and INT-MX, and INT-XD; reports v2.0.
//
// Ports are in the INT domain (an INT node is behind them) or at its edge. The watchlist chooses what gets INT headers on its way into
// the domain; towards the edge they are taken out. With INT_TRANSIT_ONLY it is a transit node of INT-MD and nothing else.
//
// With INT_LOAD, a transit node also knows the instruction of domain 0x4850 for the load of its output port.
//
// Ingress does all that needs no output port: routes, watchlist, drops. INT is egress' matter, where the queue and the times are known.

#include <core.p4>
#include <v1model.p4>
#include "packet.p4"
#include "../domain.p4"
#include "../discovery.p4"
#include "routing.p4"
#include "hop.p4"

#define PORTS 512

#ifdef INT_UDP_PORT
const bit<16> INDICATOR_PORT = INT_UDP_PORT;
#else
const bit<16> INDICATOR_PORT = 0;
#endif

#ifndef INT_TRANSIT_ONLY
// The addresses of reports, and their subjects.
struct reporter_t {
    bit<1>         on;
    bit<6>         hw_id;
    bit<16>        queue_instructions;
    bit<1>         changes_only;
    bit<5>         latency_shift;
    mac_t          src_mac;
    mac_t          dst_mac;
    ipv4_address_t src_addr;
    ipv4_address_t dst_addr;
    bit<16>        src_port;
    bit<16>        dst_port;
}

// Of the specification's bits 1 to 7: node ids are in the group header, buffers unknown, the complement is for packets alone.
const bit<16> REPORTED_INSTRUCTIONS = 0x7F00;
// Of drops: ports (1) and ingress time (4); the reason adds bit 15.
const bit<16> DROP_INSTRUCTIONS = 0x4800;

#include "edge.p4"
#include "reports.p4"
#endif

control TelemetryIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets) malformed;
    Routing() routing;
    CountRefused() count_refused;
    MeterDiscovery() meter_discovery;

#ifdef INT_TRANSIT_ONLY
    LeadsToDomain() leads_to_domain;
#else
    direct_counter(CounterType.packets) watched;
    direct_counter(CounterType.packets) watched_v6;

    // `sampling` of 65,536 packets get it.
    action watch(bit<4> mode, bit<2> npt, bit<16> instructions, bit<5> hop_ml, bit<8> hops, bit<16> domain_id,
                 bit<1> discard, bit<17> sampling, bit<1> report_drops) {
        meta.mode = mode;
        meta.npt = npt;
        meta.instructions = instructions;
        meta.hop_ml = hop_ml;
        meta.hops = hops;
        meta.domain_id = domain_id;
        meta.discard = discard;
        meta.sampling = sampling;
        meta.report_drops = report_drops;
    }

    table watchlist {
        key = {
            meta.from_domain:  ternary @name("from_domain");
            hdr.ipv4.src_addr: ternary @name("src_addr");
            hdr.ipv4.dst_addr: ternary @name("dst_addr");
            hdr.ipv4.protocol: ternary @name("protocol");
            meta.src_port:     ternary @name("src_port");
            meta.dst_port:     ternary @name("dst_port");
        }
        actions = {
            watch;
            NoAction;
        }
        default_action = NoAction();
        counters = watched;
        size = 4096;
    }

    table watchlist_v6 {
        key = {
            meta.from_domain:     ternary @name("from_domain");
            hdr.ipv6.src_addr:    ternary @name("src_addr");
            hdr.ipv6.dst_addr:    ternary @name("dst_addr");
            hdr.ipv6.next_header: ternary @name("protocol");
            meta.src_port:        ternary @name("src_port");
            meta.dst_port:        ternary @name("dst_port");
        }
        actions = {
            watch;
            NoAction;
        }
        default_action = NoAction();
        counters = watched_v6;
        size = 4096;
    }
#endif

    // To the controller, as it arrived.
    action punt() {
        standard_metadata.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in._pad = 0;
    }

    apply {
        bool is_foreign = false;
#ifdef INT_TRANSIT_ONLY
        // INT headers come from nodes of the domain. (A node with edges does not even parse them there.)
        if (hdr.int_shim.isValid()) {
            bool leads;
            leads_to_domain.apply(standard_metadata.ingress_port, leads);
            is_foreign = !leads;
        }
#endif
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (is_foreign) {
            count_refused.apply(standard_metadata.ingress_port);
            mark_to_drop(standard_metadata);
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed.count(0);
            mark_to_drop(standard_metadata);
        } else if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
#ifndef INT_TRANSIT_ONLY
            if (hdr.tcp.isValid()) {
                meta.src_port = hdr.tcp.src_port;
                meta.dst_port = hdr.tcp.dst_port;
            } else if (hdr.udp.isValid()) {
                meta.src_port = hdr.udp.src_port;
                meta.dst_port = hdr.udp.dst_port;
            }
            if (!hdr.int_shim.isValid()) {
                if (hdr.ipv4.isValid()) {
                    watchlist.apply();
                } else {
                    watchlist_v6.apply();
                }
            }
#endif
            routing.apply(hdr, standard_metadata, meta.drop_reason);
#ifndef INT_TRANSIT_ONLY
            if (meta.drop_reason != DROP_NONE) {
                if (hdr.int_shim.isValid() || meta.report_drops == 1) {
                    meta.report = 1;
                    meta.tracked = (bit<1>)hdr.int_shim.isValid();
                    meta.reported_drop = meta.drop_reason;
                    meta.report_instructions = DROP_INSTRUCTIONS;
                    // allow(invalid): without INT it is domain 0
                    meta.report_domain_id = hdr.int_header.domain_id;
                    meta.report_ports = (bit<16>)standard_metadata.ingress_port ++ UNKNOWN_16;
                    meta.report_ingress_time = (bit<64>)standard_metadata.ingress_global_timestamp;
                    clone_preserving_field_list(CloneType.I2E, REPORT_SESSION, 1);
                }
            } else {
                if (meta.mode != 0 && meta.sampling != 0x10000) {
                    bit<16> drawn;
                    random(drawn, 16w0, 16w0xFFFF);
                    if ((bit<17>)drawn >= meta.sampling) {
                        meta.mode = 0;
                    }
                }
                // Nodes outside the domain cannot send INT.
                if (meta.from_domain == 0) {
#ifdef INT_UDP_PORT
                    if (meta.indicated_fragment == 1 || (hdr.udp.isValid() && hdr.udp.dst_port == INDICATOR_PORT)) {
                        count_refused.apply(standard_metadata.ingress_port);
                        mark_to_drop(standard_metadata);
                    }
#else
                    if ((meta.dscp & DSCP_MASK) == (DSCP_VALUE & DSCP_MASK)) {
                        count_refused.apply(standard_metadata.ingress_port);
                        if (hdr.ipv4.isValid()) {
                            hdr.ipv4.diffserv[7:2] = meta.dscp & ~DSCP_MASK;
                        } else {
                            hdr.ipv6.traffic_class[7:2] = meta.dscp & ~DSCP_MASK;
                        }
                    }
#endif
                }
            }
#endif
        } else if (hdr.ethernet.ether_type == ETHERTYPE_LLDP) {
            bool is_within;
            meter_discovery.apply(standard_metadata.ingress_port, is_within);
            if (is_within) {
                punt();
            } else {
                mark_to_drop(standard_metadata);
            }
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control TelemetryEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<32> mtu = 0xFFFFFFFF;
    PushHop() push_hop;

    action identify(bit<32> node_id) {
        meta.values.node_id = node_id;
    }

    // The controller compares its indicator with this annotation.
#ifdef INT_UDP_PORT
    @int_udp_port(INT_UDP_PORT)
#endif
    table node {
        key = {}
        actions = {
            identify;
            NoAction;
        }
        default_action = NoAction();
    }

    // Logical interfaces; those that are not in these tables are unknown.
    action ingress_interface(bit<32> id) {
        meta.values.interfaces[63:32] = id;
    }

    table ingress_interfaces {
        key = {
            standard_metadata.ingress_port: exact;
        }
        actions = {
            ingress_interface;
            NoAction;
        }
        default_action = NoAction();
        size = PORTS;
    }

    action egress_interface(bit<32> id) {
        meta.values.interfaces[31:0] = id;
    }

    table egress_interfaces {
        key = {
            standard_metadata.egress_port: exact;
        }
        actions = {
            egress_interface;
            NoAction;
        }
        default_action = NoAction();
        size = PORTS;
    }

#ifndef INT_TRANSIT_ONLY
    reporter_t reporter = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    bit<1> edge = 0;
    bit<19> queue_threshold = 0;
    bit<16> queue_quota = 0;

    Source() source;
    Sink() sink;
    CorrectChecksum() correct;
    FlowChange() flow_change;
    MakeReport() make_report;

    // By port: the interval of 2^14 microseconds, bytes sent in it, bytes sent in the one before.
    register<bit<32>>(PORTS) tx_interval;
    register<bit<32>>(PORTS) tx_bytes;
    register<bit<32>>(PORTS) tx_bytes_before;
    // By port: reports in the present congestion of its queue.
    register<bit<16>>(PORTS) queue_reports;
    counter(1, CounterType.packets) discarded;

    // `edge`: no INT node is behind the port. A queue of `queue_threshold` packets is congested (0: never), and causes up to `queue_quota` reports.
    action configure(bit<32> link_mtu, bit<1> is_edge, bit<19> threshold, bit<16> quota) {
        mtu = link_mtu;
        edge = is_edge;
        queue_threshold = threshold;
        queue_quota = quota;
    }
#else
#ifdef INT_LOAD
    bit<4> rate = 0;
    // By port: bytes sent.
    register<bit<32>>(PORTS) sent_bytes;

    // `rate_code`: of the link's rate.
    action configure(bit<32> link_mtu, bit<4> rate_code) {
        mtu = link_mtu;
        rate = rate_code;
    }
#else
    action configure(bit<32> link_mtu) {
        mtu = link_mtu;
    }
#endif
#endif

    table port_settings {
        key = {
            standard_metadata.egress_port: exact;
        }
        actions = {
            configure;
            NoAction;
        }
        default_action = NoAction();
        size = PORTS;
    }

#ifndef INT_TRANSIT_ONLY
    action report_to(bit<6> hw_id, bit<16> queue_instructions, bit<1> changes_only, bit<5> latency_shift,
                     mac_t src_mac, mac_t dst_mac, ipv4_address_t src_addr, ipv4_address_t dst_addr,
                     bit<16> src_port, bit<16> dst_port) {
        reporter.on = 1;
        reporter.hw_id = hw_id;
        reporter.queue_instructions = queue_instructions;
        reporter.changes_only = changes_only;
        reporter.latency_shift = latency_shift;
        reporter.src_mac = src_mac;
        reporter.dst_mac = dst_mac;
        reporter.src_addr = src_addr;
        reporter.dst_addr = dst_addr;
        reporter.src_port = src_port;
        reporter.dst_port = dst_port;
    }

    action no_reports() {
        reporter.on = 0;
    }

    table report_settings {
        key = {}
        actions = {
            report_to;
            no_reports;
        }
        default_action = no_reports();
    }
#endif

    // The values that instructions may ask for.
    action observe() {
        meta.values.ports = (bit<16>)standard_metadata.ingress_port ++ (bit<16>)standard_metadata.egress_port;
        meta.values.latency =
            (bit<32>)(standard_metadata.egress_global_timestamp - standard_metadata.ingress_global_timestamp);
        meta.values.queue = (bit<8>)standard_metadata.priority ++ (bit<24>)standard_metadata.enq_qdepth;
        meta.values.ingress_time = (bit<64>)standard_metadata.ingress_global_timestamp;
        meta.values.egress_time = (bit<64>)standard_metadata.egress_global_timestamp;
        meta.values.interfaces = ~64w0;
        meta.values.tx_utilisation = UNKNOWN_32;
    }

    apply {
#ifdef INT_TRANSIT_ONLY
#ifdef INT_LOAD
        // All that leaves the port counts, with what it has grown by here.
        bit<32> port = (bit<32>)standard_metadata.egress_port;
        bit<32> bytes;
        sent_bytes.read(bytes, port);
        bytes = bytes + standard_metadata.packet_length + GAP_BYTES;
#endif
        if (hdr.int_header.isValid() && hdr.int_header.version == INT_VERSION) {
            node.apply();
            port_settings.apply();
            observe();
#ifdef INT_LOAD
            // Depths are in packets: the queue's bytes are those of so many packets like this one.
            bit<32> grown = standard_metadata.packet_length + ((bit<32>)hdr.int_header.hop_ml << 2);
            bit<32> queued = (bit<32>)standard_metadata.deq_qdepth * (grown >> 6);
            bit<16> queue = queued > 0xFFFF ? 16w0xFFFF : queued[15:0];
            bit<32> sent = bytes + ((bit<32>)hdr.int_header.hop_ml << 2);
            meta.values.load = rate ++ standard_metadata.egress_global_timestamp[23:0] ++ sent[26:7] ++ queue;
            bit<16> length_before = hdr.ipv4.isValid() ? hdr.ipv4.total_len : hdr.ipv6.payload_len;
#endif
            if (hdr.int_header.instructions INSTRUCTION_INTERFACES == 1) {
                ingress_interfaces.apply();
                egress_interfaces.apply();
            }
            push_hop.apply(hdr, meta.values, mtu, 0);
#ifdef INT_LOAD
            bit<16> length_now = hdr.ipv4.isValid() ? hdr.ipv4.total_len : hdr.ipv6.payload_len;
            bytes = bytes + (bit<32>)length_now - (bit<32>)length_before;
#endif
        }
#ifdef INT_LOAD
        sent_bytes.write(port, bytes);
#endif
#else
        node.apply();
        report_settings.apply();
        if (meta.report == 1 && reporter.on == 0) {
            mark_to_drop(standard_metadata);  // a node that reports to nobody
        } else if (meta.report == 1) {
            make_report.apply(hdr, meta, reporter, standard_metadata);
        } else if (standard_metadata.egress_port != CPU_PORT && (hdr.ipv4.isValid() || hdr.ipv6.isValid())) {
            port_settings.apply();
            observe();
            bit<32> port = (bit<32>)standard_metadata.egress_port;
            bit<32> interval = standard_metadata.egress_global_timestamp[45:14];
            bit<32> last_interval;
            bit<32> bytes;
            bit<32> bytes_before;
            tx_interval.read(last_interval, port);
            tx_bytes.read(bytes, port);
            tx_bytes_before.read(bytes_before, port);
            if (interval != last_interval) {
                bytes_before = interval == last_interval + 1 ? bytes : 32w0;
                bytes = 0;
                tx_interval.write(port, interval);
                tx_bytes_before.write(port, bytes_before);
            }
            meta.values.tx_utilisation = bytes_before;
            bit<16> length_before = hdr.ipv4.isValid() ? hdr.ipv4.total_len : hdr.ipv6.payload_len;
            ingress_interfaces.apply();
            egress_interfaces.apply();

            bool wanted = false;
            bool is_int = hdr.int_header.isValid() && hdr.int_header.version == INT_VERSION;
            bool discard = false;
            bool pushes = false;
            bit<64> sum = 0;
            if (hdr.int_shim.isValid()) {
                meta.tracked = (bit<1>)is_int;
                // allow(invalid): of other types than MD and MX there are none
                meta.report_instructions = hdr.int_header.instructions;
                meta.report_domain_id = hdr.int_header.domain_id;
                if (edge == 1) {
                    discard = is_int && hdr.int_header.discard == 1;
                    wanted = is_int;
                    sink.apply(hdr, meta);
                } else if (is_int && hdr.int_shim.type == INT_MD) {
                    pushes = true;
                } else {
                    wanted = is_int;
                }
            } else if (meta.mode != 0) {
                meta.tracked = 1;
                meta.report_instructions = meta.instructions;
                meta.report_domain_id = meta.domain_id;
                if (edge == 1 || meta.mode == INT_XD) {
                    wanted = true;
                } else {
                    bool inserted;
                    source.apply(hdr, meta, mtu, sum, inserted);
                    pushes = inserted && meta.mode == INT_MD;
                    wanted = inserted && meta.mode != INT_MD;
                    if (wanted && meta.npt != NPT_PROTOCOL) {
                        correct.apply(hdr, sum);
                    }
                }
            }
            if (pushes) {
                push_hop.apply(hdr, meta.values, mtu, sum);
            }
            if (discard) {
                discarded.count(0);
                mark_to_drop(standard_metadata);
            } else {
                bit<16> length_now = hdr.ipv4.isValid() ? hdr.ipv4.total_len : hdr.ipv6.payload_len;
                bytes = bytes + standard_metadata.packet_length + (bit<32>)length_now - (bit<32>)length_before;
            }
            tx_bytes.write(port, bytes);

            if (reporter.on == 1) {
                if (wanted && reporter.changes_only == 1) {
                    flow_change.apply(hdr, standard_metadata, meta.values.latency, reporter.latency_shift, wanted);
                }
                // Reports about reports would multiply where there is least room for them.
                bool is_report = hdr.udp.isValid() && hdr.udp.dst_port == reporter.dst_port &&
                                 hdr.ipv4.isValid() && hdr.ipv4.dst_addr == reporter.dst_addr;
                if (queue_threshold != 0 && !is_report) {
                    bit<16> reported;
                    queue_reports.read(reported, port);
                    if (standard_metadata.enq_qdepth < queue_threshold) {
                        queue_reports.write(port, 0);
                    } else if (reported < queue_quota) {
                        queue_reports.write(port, reported + 1);
                        meta.congested = 1;
                        if (!wanted) {
                            meta.report_instructions = reporter.queue_instructions;
                        }
                        wanted = true;
                    }
                }
                if (wanted) {
                    // Without what the group header says, and what is not known here.
                    meta.report_instructions = meta.report_instructions & REPORTED_INSTRUCTIONS;
                    if (meta.values.interfaces[63:32] == UNKNOWN_32 || meta.values.interfaces[31:0] == UNKNOWN_32) {
                        meta.report_instructions INSTRUCTION_INTERFACES = 0;
                    }
                    meta.report = 1;
                    meta.report_ports = meta.values.ports;
                    meta.report_latency = meta.values.latency;
                    meta.report_queue = meta.values.queue;
                    meta.report_ingress_time = meta.values.ingress_time;
                    meta.report_egress_time = meta.values.egress_time;
                    meta.report_interfaces = meta.values.interfaces;
                    meta.report_tx_utilisation = meta.values.tx_utilisation;
                    clone_preserving_field_list(CloneType.E2E, REPORT_SESSION, 1);
                }
            }
        }
#endif
    }
}

V1Switch(TelemetryParser(), TelemetryVerifyChecksum(), TelemetryIngress(), TelemetryEgress(),
         TelemetryComputeChecksum(), TelemetryDeparser()) main;
