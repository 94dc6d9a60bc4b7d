// Macros are expanded in annotations, whatever their form: a role, a name or a number in P4Info is the macro's value.
#include <core.p4>
#include <v1model.p4>
#define CONTROLLER "sdn_controller"
#define TABLE_NAME "the.routes"
#define TABLE_ID 0x2a
#define KEY "address"
#define KEY_ID 7
#define WHAT "routes"
#define SIZE 512
#define PASTED(a, b) a##b

#define PACKET_IN_NAME "packet_in"
#define URI "example.org/number"

@controller_header(PACKET_IN_NAME)
header packet_in_t {
    @brief("Where it came in") bit<16> port;
}

header h_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t {
    h_t h;
}

#define WIDTH 32
#define VERSION "1." "0"

@p4runtime_translation(URI, WIDTH)
type bit<9> number_t;

struct metadata_t {
    number_t x;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h); transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @p4runtime_role(CONTROLLER)
    @name(TABLE_NAME)
    @id(TABLE_ID)
    @brief(WHAT) @description("The " WHAT)
    @note(SIZE, f(CONTROLLER) /* a comment */ + PASTED(SI, ZE), "SIZE")
    @entries[number = SIZE, whose = CONTROLLER]
    table routes {
        key = {
            hdr.h.a: exact @name(KEY) @id(KEY_ID);
        }
        actions = {
            NoAction;
        }
        size = SIZE;
    }

    @p4runtime_role[CONTROLLER]
    action_selector(HashAlgorithm.crc32, 16, 8) structured;

    table selected {
        key = {
            meta.x: exact;
            hdr.h.a: selector;
        }
        actions = {
            NoAction;
        }
        implementation = structured;
    }

    apply {
        routes.apply();
        selected.apply();
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

@brief("The package") @pkginfo(name = "macros", version = VERSION, url = "example.org" "/macros")
@platform_property(multicast_group_table_size = SIZE)
V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
