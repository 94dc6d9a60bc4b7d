"""The watchlist: which flows are watched, in which mode, and what is asked about them. Data alone."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from holdfast.apps.telemetry.instructions import RESERVED, Instructions, words
from holdfast.control.ternary import prefix_of
from holdfast.parameters import Parameters

Mode: TypeAlias = Literal["md", "mx", "xd"]
"""INT-MD embeds data, INT-MX instructions; in INT-XD each node has the watchlist and packets stay as they are."""

DEFAULT_INSTRUCTIONS = int(
    Instructions.NODE_ID
    | Instructions.PORTS
    | Instructions.LATENCY
    | Instructions.QUEUE
    | Instructions.INGRESS_TIME
    | Instructions.EGRESS_TIME
)


class Watch(Parameters):
    """Flows by 5-tuple, and what becomes of them.

    Of the 5-tuple, what is None matches everything; ports have masks. ``sampling``: the share of packets. ``hops``: nodes that
    may add metadata. ``drops``: dropped packets are reported too, all of them. ``new_udp_header``: with the UDP port as
    indicator, a UDP packet gets a second UDP header, as other protocols do (NPT 2), and keeps its own port (otherwise NPT 1).
    ``discard``: the sink drops the packets, which are probes. Of several entries that match, the first in the list counts.
    """

    mode: Mode = "md"
    source: str | None = None
    destination: str | None = None
    protocol: int | None = Field(default=None, ge=0, le=255)
    source_port: int | None = Field(default=None, ge=0, le=65535)
    source_port_mask: int = Field(default=0xFFFF, ge=0, le=0xFFFF)
    destination_port: int | None = Field(default=None, ge=0, le=65535)
    destination_port_mask: int = Field(default=0xFFFF, ge=0, le=0xFFFF)
    version: Literal[4, 6] | None = None
    """The IP version of the flows; None: both, unless an address says which."""
    instructions: int = Field(default=DEFAULT_INSTRUCTIONS, ge=0, lt=1 << 16)
    sampling: float = Field(default=1.0, ge=0, le=1)
    hops: int = Field(default=8, ge=1, le=255)
    drops: bool = True
    new_udp_header: bool = False
    discard: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        versions = {prefix_of(text).version for text in (self.source, self.destination) if text is not None}
        if self.version is not None:
            versions.add(self.version)
        if len(versions) > 1:
            raise ValueError("its addresses are of both versions of IP")
        if self.instructions & RESERVED:
            raise ValueError("instructions 9 to 14 are reserved")
        if self.mode != "md" and self.instructions & Instructions.CHECKSUM_COMPLEMENT:
            raise ValueError("a checksum complement belongs to mode md")
        for name in ("source_port", "destination_port"):
            port, mask = getattr(self, name), getattr(self, f"{name}_mask")
            if port is None and mask != 0xFFFF:
                raise ValueError(f"{name}_mask needs {name}")
            if port is not None and port & ~mask:
                raise ValueError(f"{name} has bits outside {name}_mask")
        if self.protocol is None and (self.source_port is not None or self.destination_port is not None):
            raise ValueError("ports need a protocol")
        return self

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of IP, 4 or 6 or both, of the watched packets."""
        texts = (text for text in (self.source, self.destination) if text is not None)
        version = self.version or next((prefix_of(text).version for text in texts), None)
        return (4, 6) if version is None else (version,)

    @property
    def hop_words(self) -> int:
        """The number of 4-byte words that each node adds (HopML)."""
        return words(self.instructions)

    @property
    def sampling_threshold(self) -> int:
        """The number of packets out of 65,536 that are sampled."""
        return round(self.sampling * 0x10000)
