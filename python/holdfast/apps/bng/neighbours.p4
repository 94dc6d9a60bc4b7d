// Answers to ARP (RFC 826) and neighbour solicitations (RFC 4861, section 7.2.4) for the gateway's own addresses at core ports: the core's
// routers ask again and again, and must not wait for a control plane that is away.

#ifndef HOLDFAST_BNG_NEIGHBOURS_P4
#define HOLDFAST_BNG_NEIGHBOURS_P4

header arp_t {
    bit<16>        hardware;
    bit<16>        protocol;
    bit<8>         hardware_bytes;
    bit<8>         protocol_bytes;
    bit<16>        operation;
    mac_t          sender_mac;
    ipv4_address_t sender_ip;
    mac_t          target_mac;
    ipv4_address_t target_ip;
}

// A message of ICMPv6 with a link-layer address as its one option, as senders that have an address send it.
header solicitation_t {
    bit<16>        type_code;
    bit<16>        checksum;
    bit<32>        flags;
    ipv6_address_t target;
    bit<16>        option;
    mac_t          mac;
}

#define SOLICITATION_BYTES 32

// The sum of the 16-bit words of 128 bits, without carries.
#define SUM_128(x) ((bit<32>)x[15:0] + (bit<32>)x[31:16] + (bit<32>)x[47:32] + (bit<32>)x[63:48] + \
                    (bit<32>)x[79:64] + (bit<32>)x[95:80] + (bit<32>)x[111:96] + (bit<32>)x[127:112])
#define SUM_48(x) ((bit<32>)x[15:0] + (bit<32>)x[31:16] + (bit<32>)x[47:32])

control AnswerNeighbour(inout ethernet_t ethernet, inout arp_t arp, inout ipv6_t ipv6, inout solicitation_t solicitation,
                        inout standard_metadata_t standard_metadata, out bool answered) {
    bool is_own = false;
    mac_t own_mac = 0;

    action own(mac_t mac) {
        is_own = true;
        own_mac = mac;
    }

    table own_v4 {
        key = {
            standard_metadata.ingress_port: exact @name("port");
            arp.target_ip:                  exact @name("address");
        }
        actions = {
            own;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    table own_v6 {
        key = {
            standard_metadata.ingress_port: exact @name("port");
            solicitation.target:            exact @name("address");
        }
        actions = {
            own;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 1024;
    }

    apply {
        answered = false;
        if (arp.isValid()) {
            if (arp.hardware == 1 && arp.protocol == ETHERTYPE_IPV4 && arp.hardware_bytes == 6 && arp.protocol_bytes == 4 &&
                arp.operation == 1 && arp.sender_ip != arp.target_ip) {
                own_v4.apply();
            }
            if (is_own) {
                ipv4_address_t asked = arp.target_ip;
                arp.operation = 2;
                arp.target_mac = arp.sender_mac;
                arp.target_ip = arp.sender_ip;
                arp.sender_mac = own_mac;
                arp.sender_ip = asked;
                ethernet.dst_addr = arp.target_mac;
                truncate(42);
            }
        } else if (solicitation.isValid()) {
            if (ipv6.version == 6 && ipv6.next_header == PROTOCOL_ICMPV6 && ipv6.hop_limit == 255 && ipv6.src_addr != 0 &&
                solicitation.type_code == 0x8700 && solicitation.option == 0x0101) {
                own_v6.apply();
            }
            if (is_own) {
                // RFC 1624, equation 3: a checksum that was wrong stays wrong. The sender's address is in the sum before and after.
                ipv6_address_t before = ~ipv6.dst_addr;
                ipv6_address_t after = solicitation.target;
                bit<32> flags_before = ~solicitation.flags;
                mac_t mac_before = ~solicitation.mac;
                bit<32> sum = (bit<32>)(~solicitation.checksum) + SUM_128(before) + SUM_128(after) +
                              (bit<32>)flags_before[15:0] + (bit<32>)flags_before[31:16] + 0x6000 + SUM_48(mac_before) + SUM_48(own_mac) +
                              0x0200;  // one more in the upper half of the type and of the option
                sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
                sum = (bit<32>)sum[15:0] + (bit<32>)sum[31:16];
                solicitation.checksum = ~sum[15:0];
                solicitation.type_code = 0x8800;
                solicitation.flags = 0x60000000;  // solicited, override
                solicitation.option = 0x0201;
                solicitation.mac = own_mac;
                ipv6.traffic_class = 0;
                ipv6.flow_label = 0;
                ipv6.dst_addr = ipv6.src_addr;
                ipv6.src_addr = after;
                ethernet.dst_addr = ethernet.src_addr;
                truncate(14 + 40 + SOLICITATION_BYTES);
            }
        }
        if (is_own) {
            ethernet.src_addr = own_mac;
            standard_metadata.egress_spec = standard_metadata.ingress_port;
            answered = true;
        }
    }
}

#endif
