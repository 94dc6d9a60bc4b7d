// An IP multicast router for IPv4 and IPv6: router.p4 with the controls of groups.p4.

#define ROUTER_MULTICAST

#include "../router/router.p4"
