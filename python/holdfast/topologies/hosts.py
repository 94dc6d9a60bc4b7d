"""Adds hosts to generated topologies: ``h1``, ``h2`` and so on, each with one link to its switch."""

from __future__ import annotations

from typing import Any

from holdfast.topology import Host, Topology

HOST_DELAY_MS = 0.01
"""The delay in milliseconds of the link between a host and its switch: two kilometres of fibre."""


def add_host_at(topology: Topology, switch: str, **link: Any) -> Host:
    """Add the host with the next number, link it to a switch, and return it.

    ``link``: fields of :class:`holdfast.topology.Link`.
    """
    host = topology.add_host(f"h{len(topology.hosts) + 1}")
    topology.add_link(host.name, switch, **{"delay_ms": HOST_DELAY_MS, **link})
    return host
