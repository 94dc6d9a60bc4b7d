// Shorternet: switches that forward by a header of four bytes, and at their edge a lossless gateway to IPv4 and IPv6.
//
// A frame on a Shorternet link begins with short_t; there is no Ethernet header. A packet of IP enters at a port of the other kind. If the
// switch has a context for its flow, the fields that the context holds are not sent (RFC 8724 calls this a static context); the edge
// that the packet leaves by puts them back and tests a checksum over all that it put back. A packet without a context travels whole
// behind the header. Either way the IP packet leaves as it came, to the last byte: for IP a Shorternet is a link, so TTL and hop limit stay.
// A packet that would be restored wrongly is dropped and counted. Hosts that speak Shorternet themselves are stations like the edges.

#include <core.p4>
#include <v1model.p4>
#include "../headers.p4"
#include "../domain.p4"

typedef bit<8> station_t;

// Behind the header: an IP packet as it is (IANA protocol numbers 4 and 41), or one with a context (253 and 254 are for experiments,
// RFC 3692), or whatever hosts of the Shorternet send.
const bit<8> PROTOCOL_CONTEXT_IPV4 = 253;
const bit<8> PROTOCOL_CONTEXT_IPV6 = 254;

const bit<8> SHORT_TTL = 64;

// The fields of the header behind IP that are in the context: none, or ports and length of UDP, or the ports of TCP.
const bit<2> PROFILE_IP  = 0;
const bit<2> PROFILE_UDP = 1;
const bit<2> PROFILE_TCP = 2;

const bit<32> ETHERNET_BYTES = 14;
const bit<32> IPV4_BYTES     = 20;
const bit<32> IPV6_BYTES     = 40;
const bit<32> UDP_BYTES      = 8;
const bit<32> PORTS_BYTES    = 4;
const bit<32> SHORT_BYTES    = 4;
const bit<32> CONTEXT_BYTES  = 5;
const bit<32> RESIDUE_BYTES  = 2;
// Ethernet's shortest frame, without the frame check sequence: a shorter one is padded on the wire.
const bit<32> SHORTEST_BYTES = 60;

// Contexts that a switch restores, and flows that it shortens, per version of IP.
#ifndef CONTEXTS
#define CONTEXTS 16384
#endif

// The thesis' header (figure 3.1), in the place of Ethernet and IP.
header short_t {
    station_t dst_addr;
    station_t src_addr;
    bit<8>    protocol;
    bit<8>    ttl;
}

// length: the bytes behind the shortened headers plus one, in frames that Ethernet would pad; 0 in longer ones. check: CRC-16 of the
// fields that are put back.
header context_t {
    bit<16> id;
    bit<2>  profile;
    bit<6>  length;
    bit<16> check;
}

// A field that differs in each packet, and is sent: IPv4's identification, UDP's checksum.
header residue_t {
    bit<16> value;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

struct headers_t {
    packet_out_t   packet_out;
    ethernet_t     ethernet;
    short_t        short;
    context_t      context;
    residue_t      identification;
    residue_t      udp_checksum;
    ipv4_t         ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t         ipv6;
    udp_t          udp;
    ports_t        ports;
}

struct metadata_t {
    bit<1>    is_here;     // a frame for this station
    bit<1>    is_restored; // the IPv4 header needs its checksum
    bit<1>    is_local;    // the host is at a port of this switch
    station_t station;     // the edge that the host is at
    bit<2>    profile;
    bit<16>   src_port;
    bit<16>   dst_port;
}

// A flow without a context.
struct flow_ipv4_t {
    bit<8>         diffserv;
    bit<3>         flags;
    bit<8>         ttl;
    bit<8>         protocol;
    ipv4_address_t src_addr;
    ipv4_address_t dst_addr;
    bit<16>        src_port;
    bit<16>        dst_port;
}

struct flow_ipv6_t {
    bit<8>         traffic_class;
    bit<20>        flow_label;
    bit<8>         next_header;
    bit<8>         hop_limit;
    ipv6_address_t src_addr;
    ipv6_address_t dst_addr;
    bit<16>        src_port;
    bit<16>        dst_port;
}

// A packet that could not be restored: its context is not here, or is another than its sender's.
struct lost_context_t {
    station_t station;
    bit<8>    protocol;
    bit<16>   id;
}

parser ShorternetParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    // The ports with Shorternet links: told by the controller, or as a set of numbers at compile time.
#ifndef SHORT_PORTS
    value_set<port_t>(512) short_ports;
#define SHORT_PORTS short_ports
#endif

    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT:    parse_packet_out;
            SHORT_PORTS: parse_short;
            default:     parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_short {
        packet.extract(hdr.short);
        transition select(hdr.short.protocol) {
            PROTOCOL_CONTEXT_IPV4: parse_context_ipv4;
            PROTOCOL_CONTEXT_IPV6: parse_context_ipv6;
            PROTOCOL_IPV4:         parse_ipv4;
            PROTOCOL_IPV6:         parse_ipv6;
            default:               accept;
        }
    }

    state parse_context_ipv4 {
        packet.extract(hdr.context);
        packet.extract(hdr.identification);
        transition select(hdr.context.profile) {
            PROFILE_UDP: parse_udp_checksum;
            default:     accept;
        }
    }

    state parse_context_ipv6 {
        packet.extract(hdr.context);
        transition select(hdr.context.profile) {
            PROFILE_UDP: parse_udp_checksum;
            default:     accept;
        }
    }

    state parse_udp_checksum {
        packet.extract(hdr.udp_checksum);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default:        accept;
        }
    }

    // The ports of fragments are not parsed: those behind the first have none.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.ihl, hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0 &&& 1, 0, PROTOCOL_UDP): parse_udp;
            (5, 0 &&& 1, 0, PROTOCOL_TCP): parse_ports;
            (5, _, _, _):                  accept;
            default:                       parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, (bit<32>)(hdr.ipv4.ihl - 5) * 32);
        transition accept;
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_UDP: parse_udp;
            PROTOCOL_TCP: parse_ports;
            default:      accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.profile = PROFILE_UDP;
        meta.src_port = hdr.udp.src_port;
        meta.dst_port = hdr.udp.dst_port;
        transition accept;
    }

    state parse_ports {
        packet.extract(hdr.ports);
        meta.profile = PROFILE_TCP;
        meta.src_port = hdr.ports.src_port;
        meta.dst_port = hdr.ports.dst_port;
        transition accept;
    }
}

control ShorternetVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUMS(verify_checksum, true, hdr.ipv4, hdr.ipv4_options);
    }
}

// CRC-16 of what a context, the frame's length and the residues say of the headers.
#define CHECK_IPV4(result) hash(result, HashAlgorithm.crc16, 16w0, \
    { hdr.ipv4.diffserv, hdr.ipv4.total_len, hdr.ipv4.identification, hdr.ipv4.flags, 5w0, hdr.ipv4.ttl, \
      hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, meta.src_port, meta.dst_port }, 32w65536)
#define CHECK_IPV6(result) hash(result, HashAlgorithm.crc16, 16w0, \
    { hdr.ipv6.traffic_class, hdr.ipv6.flow_label, 4w0, hdr.ipv6.payload_len, hdr.ipv6.next_header, \
      hdr.ipv6.hop_limit, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, meta.src_port, meta.dst_port }, 32w65536)

// From IP to Shorternet: with a context where there is one.
control Shorten(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) ipv4_flow_counter;
    direct_counter(CounterType.packets_and_bytes) ipv6_flow_counter;
    counter(1, CounterType.packets_and_bytes) whole;
    // Flows that are told to the controller: those that are red are not.
    meter(1, MeterType.packets) learning;

    bit<16> id = 0;
    bit<2> color = 0;

    action shorten(bit<16> context) {
        id = context;
    }

    table ipv4_flows {
        key = {
            hdr.ipv4.diffserv: exact @name("diffserv");
            hdr.ipv4.flags:    exact @name("flags");
            hdr.ipv4.ttl:      exact @name("ttl");
            hdr.ipv4.protocol: exact @name("protocol");
            hdr.ipv4.src_addr: exact @name("src_addr");
            hdr.ipv4.dst_addr: exact @name("dst_addr");
            meta.src_port:     exact @name("src_port");
            meta.dst_port:     exact @name("dst_port");
        }
        actions = { shorten; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = ipv4_flow_counter;
        support_timeout = true;
        size = CONTEXTS;
    }

    table ipv6_flows {
        key = {
            hdr.ipv6.traffic_class: exact @name("traffic_class");
            hdr.ipv6.flow_label:    exact @name("flow_label");
            hdr.ipv6.next_header:   exact @name("next_header");
            hdr.ipv6.hop_limit:     exact @name("hop_limit");
            hdr.ipv6.src_addr:      exact @name("src_addr");
            hdr.ipv6.dst_addr:      exact @name("dst_addr");
            meta.src_port:          exact @name("src_port");
            meta.dst_port:          exact @name("dst_port");
        }
        actions = { shorten; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = ipv6_flow_counter;
        support_timeout = true;
        size = CONTEXTS;
    }

    apply {
        bit<32> packet_bytes;
        bit<32> shortened;
        // The bytes behind the headers that are shortened.
        bit<32> rest;
        bool fits;
        bool found = false;
        if (hdr.ipv4.isValid()) {
            packet_bytes = (bit<32>)hdr.ipv4.total_len;
            rest = packet_bytes - IPV4_BYTES;
            // No context holds options, nor what differs between fragments.
            fits = !hdr.ipv4_options.isValid() && hdr.ipv4.flags[0:0] == 0 && hdr.ipv4.frag_offset == 0;
            shortened = SHORT_BYTES + CONTEXT_BYTES + RESIDUE_BYTES;
        } else {
            packet_bytes = (bit<32>)hdr.ipv6.payload_len + IPV6_BYTES;
            rest = packet_bytes - IPV6_BYTES;
            fits = true;
            shortened = SHORT_BYTES + CONTEXT_BYTES;
        }
        if (meta.profile == PROFILE_UDP) {
            // A length that says something else than IP's cannot be put back.
            fits = fits && hdr.udp.length >= 8 && (bit<32>)hdr.udp.length == rest;
            rest = rest - UDP_BYTES;
            shortened = shortened + RESIDUE_BYTES;
        } else if (meta.profile == PROFILE_TCP) {
            fits = fits && rest >= PORTS_BYTES;
            rest = rest - PORTS_BYTES;
        }
        // Bytes behind the packet are Ethernet's padding, or travel with it.
        bool padded = standard_metadata.packet_length != packet_bytes + ETHERNET_BYTES;
        fits = fits && (!padded || standard_metadata.packet_length <= SHORTEST_BYTES);

        if (fits) {
            if (hdr.ipv4.isValid()) {
                found = ipv4_flows.apply().hit;
            } else {
                found = ipv6_flows.apply().hit;
            }
            if (!found) {
                learning.execute_meter(0, color);
                if (color == 0) {
                    if (hdr.ipv4.isValid()) {
                        digest<flow_ipv4_t>(1, { hdr.ipv4.diffserv, hdr.ipv4.flags, hdr.ipv4.ttl, hdr.ipv4.protocol,
                            hdr.ipv4.src_addr, hdr.ipv4.dst_addr, meta.src_port, meta.dst_port });
                    } else {
                        digest<flow_ipv6_t>(2, { hdr.ipv6.traffic_class, hdr.ipv6.flow_label, hdr.ipv6.next_header,
                            hdr.ipv6.hop_limit, hdr.ipv6.src_addr, hdr.ipv6.dst_addr, meta.src_port, meta.dst_port });
                    }
                }
            }
        }

        hdr.ethernet.setInvalid();
        hdr.short.setValid();
        hdr.short.dst_addr = meta.station;
        hdr.short.ttl = SHORT_TTL;
        if (found) {
            hdr.context.setValid();
            hdr.context.id = id;
            hdr.context.profile = meta.profile;
            hdr.context.length = 0;
            shortened = shortened + rest;
            if (shortened < SHORTEST_BYTES) {
                hdr.context.length = (bit<6>)(rest + 1);
            }
            if (padded) {
                truncate(shortened);
            }
            bit<16> check;
            if (hdr.ipv4.isValid()) {
                CHECK_IPV4(check);
                hdr.short.protocol = PROTOCOL_CONTEXT_IPV4;
                hdr.identification.setValid();
                hdr.identification.value = hdr.ipv4.identification;
                hdr.ipv4.setInvalid();
            } else {
                CHECK_IPV6(check);
                hdr.short.protocol = PROTOCOL_CONTEXT_IPV6;
                hdr.ipv6.setInvalid();
            }
            hdr.context.check = check;
            if (hdr.udp.isValid()) {
                hdr.udp_checksum.setValid();
                hdr.udp_checksum.value = hdr.udp.checksum;
                hdr.udp.setInvalid();
            }
            hdr.ports.setInvalid();
        } else {
            whole.count(0);
            hdr.short.protocol = hdr.ipv4.isValid() ? PROTOCOL_IPV4 : PROTOCOL_IPV6;
        }
    }
}

// From Shorternet to IP: the fields of the context are put back, and tested.
control Restore(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                out bool succeeds) {
    direct_counter(CounterType.packets_and_bytes) ipv4_context_counter;
    direct_counter(CounterType.packets_and_bytes) ipv6_context_counter;
    counter(1, CounterType.packets) no_context;
    counter(1, CounterType.packets) wrong_context;
    counter(1, CounterType.packets) wrong_length;

    action restore_ipv4(bit<8> diffserv, bit<3> flags, bit<8> ttl, bit<8> protocol, ipv4_address_t src_addr,
                        ipv4_address_t dst_addr, bit<16> src_port, bit<16> dst_port) {
        hdr.ipv4.setValid();
        hdr.ipv4.version = 4;
        hdr.ipv4.ihl = 5;
        hdr.ipv4.diffserv = diffserv;
        hdr.ipv4.identification = hdr.identification.value;
        hdr.ipv4.flags = flags;
        hdr.ipv4.frag_offset = 0;
        hdr.ipv4.ttl = ttl;
        hdr.ipv4.protocol = protocol;
        hdr.ipv4.src_addr = src_addr;
        hdr.ipv4.dst_addr = dst_addr;
        meta.src_port = src_port;
        meta.dst_port = dst_port;
    }

    action restore_ipv6(bit<8> traffic_class, bit<20> flow_label, bit<8> next_header, bit<8> hop_limit,
                        ipv6_address_t src_addr, ipv6_address_t dst_addr, bit<16> src_port, bit<16> dst_port) {
        hdr.ipv6.setValid();
        hdr.ipv6.version = 6;
        hdr.ipv6.traffic_class = traffic_class;
        hdr.ipv6.flow_label = flow_label;
        hdr.ipv6.next_header = next_header;
        hdr.ipv6.hop_limit = hop_limit;
        hdr.ipv6.src_addr = src_addr;
        hdr.ipv6.dst_addr = dst_addr;
        meta.src_port = src_port;
        meta.dst_port = dst_port;
    }

    // Context numbers are the sender's, so they are looked up with it.
    table ipv4_contexts {
        key = {
            hdr.short.src_addr:  exact @name("station");
            hdr.context.id:      exact @name("context");
            hdr.context.profile: exact @name("profile");
        }
        actions = { restore_ipv4; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = ipv4_context_counter;
        size = CONTEXTS;
    }

    table ipv6_contexts {
        key = {
            hdr.short.src_addr:  exact @name("station");
            hdr.context.id:      exact @name("context");
            hdr.context.profile: exact @name("profile");
        }
        actions = { restore_ipv6; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = ipv6_context_counter;
        size = CONTEXTS;
    }

    apply {
        bit<32> headers = SHORT_BYTES + CONTEXT_BYTES;
        bit<32> put_back = 0;
        bool found;
        if (hdr.identification.isValid()) {
            found = ipv4_contexts.apply().hit;
            headers = headers + RESIDUE_BYTES;
            put_back = IPV4_BYTES;
        } else {
            found = ipv6_contexts.apply().hit;
        }
        bit<32> transport = 0;
        if (hdr.context.profile == PROFILE_UDP) {
            headers = headers + RESIDUE_BYTES;
            transport = UDP_BYTES;
        } else if (hdr.context.profile == PROFILE_TCP) {
            transport = PORTS_BYTES;
        }
        bit<32> there = standard_metadata.packet_length - headers;
        bit<32> rest = hdr.context.length == 0 ? there : (bit<32>)hdr.context.length - 1;
        // As IP counts: with its own header in IPv4, without in IPv6.
        bit<32> length = put_back + transport + rest;

        succeeds = false;
        if (rest > there || length > 65535) {
            wrong_length.count(0);
        } else if (!found) {
            no_context.count(0);
            digest<lost_context_t>(3, { hdr.short.src_addr, hdr.short.protocol, hdr.context.id });
        } else {
            bit<16> check;
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.total_len = (bit<16>)length;
                CHECK_IPV4(check);
            } else {
                hdr.ipv6.payload_len = (bit<16>)length;
                CHECK_IPV6(check);
                length = length + IPV6_BYTES;
            }
            if (check != hdr.context.check) {
                wrong_context.count(0);
                digest<lost_context_t>(3, { hdr.short.src_addr, hdr.short.protocol, hdr.context.id });
            } else {
                succeeds = true;
                meta.is_restored = 1;
                if (rest != there) {
                    truncate(length + ETHERNET_BYTES);
                }
                if (hdr.context.profile == PROFILE_UDP) {
                    hdr.udp.setValid();
                    hdr.udp.src_port = meta.src_port;
                    hdr.udp.dst_port = meta.dst_port;
                    hdr.udp.length = (bit<16>)(UDP_BYTES + rest);
                    hdr.udp.checksum = hdr.udp_checksum.value;
                } else if (hdr.context.profile == PROFILE_TCP) {
                    hdr.ports.setValid();
                    hdr.ports.src_port = meta.src_port;
                    hdr.ports.dst_port = meta.dst_port;
                }
                hdr.context.setInvalid();
                hdr.identification.setInvalid();
                hdr.udp_checksum.setInvalid();
            }
        }
    }
}

control ShorternetIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) station_counter;
    counter(1, CounterType.packets) malformed;
    counter(1, CounterType.packets) ttl_expired;
    counter(1, CounterType.packets) no_station;
    counter(1, CounterType.packets) no_host;
    counter(1, CounterType.packets) unknown_protocol;

    Shorten() shorten;
    Restore() restore;
    CountRefused() count_refused;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action receive() {
        meta.is_here = 1;
    }

    bool is_forged = false;

    action speak(station_t station) {
        is_forged = hdr.short.src_addr != station;
    }

    // The ports that lead to a host that is a station: it speaks for no other one. A switch sends on what others have sent.
    table speakers {
        key = {
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = { speak; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    // The outputs towards stations: a station is an edge, or a host that speaks Shorternet.
    table stations {
        key = {
            hdr.short.dst_addr: exact @name("station");
        }
        actions = { forward; receive; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = station_counter;
        size = 256;
    }

    // The host is at a port of this switch.
    action deliver(port_t port, mac_t src_mac, mac_t dst_mac) {
        meta.is_local = 1;
        standard_metadata.egress_spec = port;
        hdr.ethernet.setValid();
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
    }

    // The host is behind another edge.
    action send(station_t station) {
        meta.station = station;
    }

    table ipv4_hosts {
        key = {
            hdr.ipv4.dst_addr: lpm @name("dst_addr");
        }
        actions = { deliver; send; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    table ipv6_hosts {
        key = {
            hdr.ipv6.dst_addr: lpm @name("dst_addr");
        }
        actions = { deliver; send; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    // own: the station of this switch.
    action towards(port_t port, station_t own) {
        standard_metadata.egress_spec = port;
        hdr.short.src_addr = own;
    }

    // The way from here to another edge.
    table edges {
        key = {
            meta.station: exact @name("station");
        }
        actions = { towards; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 256;
    }

    apply {
        bool is_short = hdr.short.isValid();
        bool is_sound = standard_metadata.parser_error == error.NoError && standard_metadata.checksum_error == 0;
        bool is_ip = false;

        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (is_short) {
            speakers.apply();
            // The data behind the header is the receiving station's business.
            if (is_forged) {
                count_refused.apply(standard_metadata.ingress_port);
                drop();
            } else if (!stations.apply().hit) {
                no_station.count(0);
                drop();
            } else if (meta.is_here == 1) {
                if (!is_sound) {
                    malformed.count(0);
                    drop();
                } else if (hdr.context.isValid()) {
                    restore.apply(hdr, meta, standard_metadata, is_ip);
                    if (!is_ip) {
                        drop();
                    }
                } else if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
                    is_ip = true;
                } else {
                    unknown_protocol.count(0);
                    drop();
                }
            } else if (hdr.short.ttl <= 1) {
                ttl_expired.count(0);
                drop();
            } else {
                hdr.short.ttl = hdr.short.ttl - 1;
            }
        } else if (!is_sound || !(hdr.ipv4.isValid() || hdr.ipv6.isValid())) {
            malformed.count(0);
            drop();
        } else if (hdr.ipv4.isValid() && (hdr.ipv4.total_len < (bit<16>)hdr.ipv4.ihl * 4
                || standard_metadata.packet_length < (bit<32>)hdr.ipv4.total_len + ETHERNET_BYTES)
            || hdr.ipv6.isValid()
                && standard_metadata.packet_length < (bit<32>)hdr.ipv6.payload_len + IPV6_BYTES + ETHERNET_BYTES) {
            malformed.count(0);
            drop();
        } else {
            is_ip = true;
        }

        if (is_ip) {
            bool known;
            if (hdr.ipv4.isValid()) {
                known = ipv4_hosts.apply().hit;
            } else {
                known = ipv6_hosts.apply().hit;
            }
            if (!known || is_short && meta.is_local == 0) {
                // A packet that has left the Shorternet here does not enter it again: no loop between edges.
                no_host.count(0);
                drop();
            } else if (meta.is_local == 1) {
                hdr.ethernet.ether_type = hdr.ipv4.isValid() ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;
                hdr.short.setInvalid();
            } else {
                shorten.apply(hdr, meta, standard_metadata);
                if (!edges.apply().hit) {
                    no_station.count(0);
                    drop();
                }
            }
        }
    }
}

control ShorternetEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control ShorternetComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        IPV4_CHECKSUM(update_checksum, hdr.ipv4.isValid() && meta.is_restored == 1, hdr.ipv4);
    }
}

control ShorternetDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.short);
        packet.emit(hdr.context);
        packet.emit(hdr.identification);
        packet.emit(hdr.udp_checksum);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.ports);
    }
}

V1Switch(ShorternetParser(), ShorternetVerifyChecksum(), ShorternetIngress(), ShorternetEgress(),
         ShorternetComputeChecksum(), ShorternetDeparser()) main;
