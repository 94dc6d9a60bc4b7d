// The edge of a domain. An encapsulation that the domain owns comes from its own switches alone: at every port that does not lead to one of
// them, a packet in it is refused and counted. A port that nobody has said anything of is at the edge.
//
// Which packets these are is each program's business. The register and the counter have the same names in all programs, so that one part of
// controllers keeps them (holdfast.control.domain). It is a register and not a table because each packet of a tunnel reads it at each node.

#ifndef HOLDFAST_DOMAIN_P4
#define HOLDFAST_DOMAIN_P4

#define DOMAIN_PORTS 512

// Whether a switch of the domain is behind a port.
control LeadsToDomain(in port_t port, out bool leads) {
    // By port; 1 if there is one.
    @name(".domain_ports")
    register<bit<1>>(DOMAIN_PORTS) domain_ports;

    apply {
        bit<1> there;
        domain_ports.read(there, (bit<32>)port);
        leads = there == 1;
    }
}

// Counts a packet that is refused at a port of the edge, by port.
control CountRefused(in port_t port) {
    @name(".refused")
    counter(DOMAIN_PORTS, CounterType.packets_and_bytes) refused;

    apply {
        refused.count((bit<32>)port);
    }
}

#endif
