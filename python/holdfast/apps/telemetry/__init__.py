"""In-band Network Telemetry v2.1."""
