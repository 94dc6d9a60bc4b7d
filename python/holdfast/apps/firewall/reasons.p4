// Why a packet is dropped. The numbers are the indices of the counter `drops` and travel in the log; `reasons.py` has their names.

#ifndef HOLDFAST_FIREWALL_REASONS_P4
#define HOLDFAST_FIREWALL_REASONS_P4

typedef bit<8> reason_t;
const reason_t PASSES           = 0;
const reason_t TRUNCATED        = 1;   // shorter than its headers say
const reason_t MALFORMED        = 2;   // lengths or versions that cannot be
const reason_t BAD_CHECKSUM     = 3;   // of the IPv4 header
const reason_t ETHERTYPE        = 4;   // neither ARP, IPv4 nor IPv6
const reason_t NOT_READY        = 5;   // no rule set is active
const reason_t UNKNOWN_PORT     = 6;   // no zone
const reason_t SPOOFED_MAC      = 7;   // the source MAC address is not bound to this port
const reason_t SPOOFED_ADDRESS  = 8;   // nor is the IP address, the sender of ARP, or a claimed neighbour; or it is another port's
const reason_t BOGUS_ADDRESS    = 9;   // that no packet on a wire may have, or the same at both ends
const reason_t IP_OPTIONS       = 10;
const reason_t FRAGMENT         = 11;
const reason_t EXTENSION_HEADER = 12;
const reason_t TTL_EXPIRED      = 13;
const reason_t MULTICAST        = 14;
const reason_t NO_ROUTE         = 15;  // no route, or no such station
const reason_t UNKNOWN_RECEIVER = 16;  // the destination MAC address is not bound to the output port
const reason_t TCP_FLAGS        = 17;  // flags that no TCP sends together
const reason_t TCP_NO_STATE     = 18;  // not the first segment, and of no connection
const reason_t TCP_STATE        = 19;  // a flag that the connection is not in the state for
const reason_t TCP_WINDOW       = 20;  // outside the windows
const reason_t TCP_RESET        = 21;  // a reset with a number that it cannot have
const reason_t ICMP_TYPE        = 22;  // neither echo nor an error about a flow
const reason_t ICMP_UNRELATED   = 23;  // an error or an echo reply of no flow
const reason_t REPLY_ONLY       = 24;  // a new flow from a zone that may only reply
const reason_t WRONG_ZONE       = 25;  // a packet of a flow that came from or goes to elsewhere
const reason_t DENIED           = 26;  // by a rule
const reason_t NO_RULE          = 27;
const reason_t FLOW_RATE        = 28;  // too many new flows of this source
const reason_t TABLE_FULL       = 29;
const reason_t RATE_LIMIT       = 30;
const reason_t ROGUE_SERVER     = 31;  // of DHCP, or a router's advertisement
const reason_t CONTROLLER_RATE  = 32;  // more for the controller than it takes
const reason_t NO_CONTROLLER    = 33;  // address assignment on a port that is not authenticated
#define REASONS 34

#endif
