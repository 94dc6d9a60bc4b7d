headr ethernet_t {
    bit<48> dst;
}
structure S { }
const bit<8> AFTER = $;
