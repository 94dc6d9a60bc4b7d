// Why a packet is dropped. The numbers are the indices of the counter `drops`; `program.py` has their names.

#ifndef HOLDFAST_BNG_REASONS_P4
#define HOLDFAST_BNG_REASONS_P4

typedef bit<8> reason_t;
const reason_t PASSES          = 0;
const reason_t TRUNCATED       = 1;   // shorter than its headers say
const reason_t MALFORMED       = 2;   // versions, codes or lengths that cannot be
const reason_t BAD_CHECKSUM    = 3;   // of the IPv4 header
const reason_t UNKNOWN_PORT    = 4;   // a port without a role
const reason_t ETHERTYPE       = 5;   // of no use on this port
const reason_t BAD_TAGS        = 6;   // VLAN 4095, or an outer VLAN 0 in front of a second tag
const reason_t OTHER_GATEWAY   = 7;   // not for our MAC address
const reason_t UNKNOWN_SESSION = 8;
const reason_t WRONG_LINE      = 9;   // a session of another line
const reason_t WRONG_MAC       = 10;  // a session of another MAC address
const reason_t NOT_NEGOTIATED  = 11;  // a version of IP that the session does not have
const reason_t SPOOFED_ADDRESS = 12;  // a source that is not the session's
const reason_t BOGUS_ADDRESS   = 13;  // an address that no packet has beyond its link: a destination of a line's, a source of the core's
const reason_t TTL_EXPIRED     = 14;
const reason_t NO_ROUTE        = 15;
const reason_t NO_SUBSCRIBER   = 16;  // a destination that no session has
const reason_t TOO_BIG         = 17;  // for the subscriber's MRU, or the core's MTU
const reason_t RATE_UP         = 18;  // beyond the session's limit
const reason_t RATE_DOWN       = 19;
const reason_t LINE_RATE       = 20;  // more for the controller than a line may send
const reason_t CONTROL_RATE    = 21;  // more for the controller than it takes from all lines
const reason_t WRONG_PLANE     = 22;  // for the other one of two planes
const reason_t NODE_RATE       = 23;  // more for the controller than an access node may send
#define REASONS 24

#endif
