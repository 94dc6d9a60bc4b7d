// A backslash at the end of a line joins it with the next one before the text is cut into tokens.
#include <co\
re.p4>
#inc\
lude <v1model.p4>
#define LONG_NA\
ME(width) bit<wid\
th>
#define SHIFT(x) x >\
> 1  // a comment that goes on \
) and on
/\
* a comment that begins on two lines *\
/
const LONG_NAME(1\
6) value = SHIFT(16w0x1\
234);
header data_t { LONG_NAME(8) a\
; }
struct headers { data_t data; }
struct metadata { }
parser P(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(hdr.data); transition acc\
ept; }
}
control V(inout headers hdr, inout metadata m) { apply { } }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
    @name("a\
b") action set() { hdr.data.a |\
+|= value[7:0]; }
    apply { set(); s.egress_spec = 1; }
}
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply { } }
control C(inout headers hdr, inout metadata m) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.data); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
