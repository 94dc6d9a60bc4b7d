// PSA's externs: registers, counters, meters, hashes, checksums, random numbers, digests, action profiles.
#include <core.p4>
#include <bmv2/psa.p4>

header words_t {
    bit<8>  kind;
    bit<8>  index;
    bit<16> a;
    bit<16> b;
    bit<16> c;
    bit<32> result;
}

struct headers_t {
    words_t words;
}

struct empty_t {
}

struct learn_t {
    bit<8>  index;
    bit<16> a;
}

struct pair_t {
    bit<16> first;
    bit<16> second;
}

parser IngressParserImpl(packet_in packet,
                         out headers_t hdr,
                         inout empty_t meta,
                         in psa_ingress_parser_input_metadata_t istd,
                         in empty_t resubmit_meta,
                         in empty_t recirculate_meta) {
    InternetChecksum() sum;
    state start {
        packet.extract(hdr.words);
        transition select(hdr.words.kind) {
            10: check;
            default: accept;
        }
    }
    state check {
        sum.clear();
        sum.add({ hdr.words.a, hdr.words.b });
        // An own error would do as well.
        verify(sum.get() == hdr.words.c, error.ParserInvalidArgument);
        transition accept;
    }
}

control IngressImpl(inout headers_t hdr,
                    inout empty_t meta,
                    in psa_ingress_input_metadata_t istd,
                    inout psa_ingress_output_metadata_t ostd) {
    Register<pair_t, bit<8>>(4) pairs;
    Register<bit<16>, bit<8>>(4, 0) sums;
    Counter<bit<32>, bit<8>>(4, PSA_CounterType_t.PACKETS_AND_BYTES) counts;
    Meter<bit<8>>(4, PSA_MeterType_t.PACKETS) rates;
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc32;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    Hash<bit<16>>(PSA_HashAlgorithm_t.IDENTITY) same;
    InternetChecksum() sum;
    Checksum<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) words;
    Random<bit<16>>(5, 9) dice;
    ActionProfile(16) profile;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) hits;

    action set(bit<32> value) {
        hits.count();
        hdr.words.result = value;
    }
    action choose(bit<32> value) {
        hdr.words.result = value;
    }
    table direct {
        key = { hdr.words.index: exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
        psa_direct_counter = hits;
    }
    table profiled {
        key = { hdr.words.index: exact; }
        actions = { choose; NoAction; }
        psa_implementation = profile;
    }

    apply {
        if (hdr.words.kind == 1) {
            pair_t pair = pairs.read(hdr.words.index);
            hdr.words.result = pair.first ++ pair.second;
            pair.first = pair.first + hdr.words.a;
            pair.second = hdr.words.b;
            pairs.write(hdr.words.index, pair);
        } else if (hdr.words.kind == 2) {
            counts.count(hdr.words.index);
        } else if (hdr.words.kind == 3) {
            PSA_MeterColor_t colour = rates.execute(hdr.words.index);
            if (colour == PSA_MeterColor_t.GREEN) {
                hdr.words.result = 1;
            } else if (colour == PSA_MeterColor_t.YELLOW) {
                hdr.words.result = 2;
            } else if (rates.execute(hdr.words.index, PSA_MeterColor_t.GREEN) == PSA_MeterColor_t.RED) {
                hdr.words.result = 3;
            }
        } else if (hdr.words.kind == 4) {
            hdr.words.result = crc32.get_hash({ hdr.words.a, hdr.words.b });
        } else if (hdr.words.kind == 5) {
            hdr.words.result = 16w0 ++ crc16.get_hash(hdr.words.a);
            hdr.words.a = same.get_hash(16w100, { hdr.words.b }, 16w10);
        } else if (hdr.words.kind == 14) {
            // 12 bits, with zeros in front.
            hdr.words.result = 16w0 ++ crc16.get_hash({ hdr.words.a[11:0] });
        } else if (hdr.words.kind == 6) {
            sum.add({ hdr.words.a, hdr.words.b });
            bit<16> both = sum.get();
            bit<16> state = sum.get_state();
            sum.subtract(hdr.words.b);
            hdr.words.result = both ++ sum.get();
            sum.clear();
            sum.set_state(state);
            sum.add(hdr.words.c);
            hdr.words.a = sum.get();
            words.update({ hdr.words.b });
            words.update(hdr.words.c);
            hdr.words.b = words.get();
        } else if (hdr.words.kind == 7) {
            bit<16> drawn = dice.read();
            hdr.words.result = drawn >= 5 && drawn <= 9 ? 32w1 : 0;
        } else if (hdr.words.kind == 8) {
            direct.apply();
        } else if (hdr.words.kind == 9) {
            profiled.apply();
        } else if (hdr.words.kind == 10 && istd.parser_error != error.NoError) {
            hdr.words.result = 0xbad;
        }
        send_to_port(ostd, (PortId_t)1);
    }
}

control IngressDeparserImpl(packet_out packet,
                            out empty_t clone_i2e_meta,
                            out empty_t resubmit_meta,
                            out empty_t normal_meta,
                            inout headers_t hdr,
                            in empty_t meta,
                            in psa_ingress_output_metadata_t istd) {
    Digest<learn_t>() learn;
    apply {
        if (hdr.words.kind == 11) {
            learn.pack({ hdr.words.index, hdr.words.a });
        }
        packet.emit(hdr);
    }
}

parser EgressParserImpl(packet_in packet,
                        out headers_t hdr,
                        inout empty_t meta,
                        in psa_egress_parser_input_metadata_t istd,
                        in empty_t normal_meta,
                        in empty_t clone_i2e_meta,
                        in empty_t clone_e2e_meta) {
    state start {
        packet.extract(hdr.words);
        transition select(hdr.words.kind) {
            12: fail;
            default: accept;
        }
    }
    state fail {
        transition reject;
    }
}

control EgressImpl(inout headers_t hdr,
                   inout empty_t meta,
                   in psa_egress_input_metadata_t istd,
                   inout psa_egress_output_metadata_t ostd) {
    apply {
    }
}

control EgressDeparserImpl(packet_out packet,
                           out empty_t clone_e2e_meta,
                           out empty_t recirculate_meta,
                           inout headers_t hdr,
                           in empty_t meta,
                           in psa_egress_output_metadata_t istd,
                           in psa_egress_deparser_input_metadata_t edstd) {
    InternetChecksum() sum;
    apply {
        if (hdr.words.kind == 13) {
            sum.add({ hdr.words.a, hdr.words.b });
            hdr.words.c = sum.get();
        }
        packet.emit(hdr);
    }
}

PSA_Switch(IngressPipeline(IngressParserImpl(), IngressImpl(), IngressDeparserImpl()),
           PacketReplicationEngine(),
           EgressPipeline(EgressParserImpl(), EgressImpl(), EgressDeparserImpl()),
           BufferingQueueingEngine()) main;
