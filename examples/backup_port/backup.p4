// Routes with a backup: while the port of a route is down, its packets leave by the backup port.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  diffserv;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> hdr_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
}

parser BackupParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800:  parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control BackupVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control BackupIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // The switch keeps the state of its ports here: 1 is up.
    @port_state register<bit<1>>(512) port_up;

    action drop() {
        mark_to_drop(standard);
    }

    action forward(bit<9> port, bit<48> src_mac, bit<48> dst_mac,
                   bit<9> backup_port, bit<48> backup_src_mac, bit<48> backup_dst_mac) {
        bit<1> up;
        port_up.read(up, (bit<32>)port);
        if (up == 1) {
            standard.egress_spec = port;
            hdr.ethernet.src_addr = src_mac;
            hdr.ethernet.dst_addr = dst_mac;
        } else {
            standard.egress_spec = backup_port;
            hdr.ethernet.src_addr = backup_src_mac;
            hdr.ethernet.dst_addr = backup_dst_mac;
        }
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table routes {
        key = {
            hdr.ipv4.dst_addr: lpm;
        }
        actions = {
            forward;
            drop;
        }
        default_action = drop();
        size = 4096;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            routes.apply();
        } else {
            drop();
        }
    }
}

control BackupEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
    }
}

control BackupChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
                        { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_len,
                          hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl,
                          hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
                        hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}

control BackupDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(BackupParser(), BackupVerify(), BackupIngress(), BackupEgress(), BackupChecksum(), BackupDeparser()) main;
