"""BIER (RFC 8279, RFC 8296): multicast without state per group in the core, and its fast reroute."""
