// Frames of link discovery (IEEE 802.1AB) at their way to the controller: so many of a port in a second, and no more. Otherwise those of
// one host would keep the genuine frames of all other ports waiting, and links would leave the map.
//
// The meter and the counter have the same names in all programs, so that one part of controllers sets the rate (holdfast.discovery).
// A meter without rates lets all pass.

#ifndef HOLDFAST_DISCOVERY_P4
#define HOLDFAST_DISCOVERY_P4

#define DISCOVERY_PORTS 512

// Whether a frame that came in at a port is within the port's rate. Frames beyond it are counted by port.
control MeterDiscovery(in port_t port, out bool is_within) {
    @name(".discovery_rate")
    meter(DISCOVERY_PORTS, MeterType.packets) discovery_rate;
    @name(".discovery_rate_exceeded")
    counter(DISCOVERY_PORTS, CounterType.packets) discovery_rate_exceeded;

    apply {
        bit<2> colour;
        discovery_rate.execute_meter((bit<32>)port, colour);
        is_within = colour != V1MODEL_METER_COLOR_RED;
        if (!is_within) {
            discovery_rate_exceeded.count((bit<32>)port);
        }
    }
}

#endif
