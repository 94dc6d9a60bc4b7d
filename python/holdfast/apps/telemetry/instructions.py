"""The instruction bitmap of INT v2.1 (section 5.7), which the report specification's RepMdBits follow.

It does not know who asks for what.
"""

from __future__ import annotations

from enum import IntFlag


class Instructions(IntFlag):
    """The metadata that each node is asked for, as an instruction bitmap; bit 0 of the specification is the most significant."""

    NODE_ID = 1 << 15
    PORTS = 1 << 14
    """Level 1 interfaces: ingress 16, egress 16 bits."""
    LATENCY = 1 << 13
    """Microseconds in the node, as this program counts them."""
    QUEUE = 1 << 12
    """Queue 8, occupancy 24 bits: packets in front of this one."""
    INGRESS_TIME = 1 << 11
    """Microseconds, 64 bits."""
    EGRESS_TIME = 1 << 10
    """Microseconds, 64 bits."""
    INTERFACES = 1 << 9
    """Level 2 interfaces: 32 bits each."""
    TX_UTILISATION = 1 << 8
    """Bytes that the egress port sent in the last complete interval of 2^14 microseconds."""
    BUFFER = 1 << 7
    """Buffer 8, occupancy 24 bits: unknown to v1model."""
    CHECKSUM_COMPLEMENT = 1 << 0
    """In reports of drops, the reason instead."""


RESERVED = 0b111_1110
"""Bits 9 to 14."""

_DOUBLE = Instructions.INGRESS_TIME | Instructions.EGRESS_TIME | Instructions.INTERFACES


def words(instructions: int) -> int:
    """Return how many 4-byte words each node adds for an instruction bitmap; a reserved bit counts as one word."""
    return instructions.bit_count() + (instructions & _DOUBLE).bit_count()
