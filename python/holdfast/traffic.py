"""Traffic of modelled hosts: data that a network is given before it runs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class UdpStream(BaseModel):
    """Constant-rate UDP with a sequence number and the sending time in every packet.

    ``payload_bytes`` counts from behind the UDP header; its beginning is the flow, the sequence number and the time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    destination: str
    packets_per_s: float = Field(default=1000.0, gt=0, le=100_000_000)
    payload_bytes: int = Field(default=1000, ge=28, le=9000)
    start_s: float = Field(default=0.0, ge=0)
    stop_s: float = Field(gt=0)
    source_port: int = Field(default=5001, ge=1, le=65535)
    destination_port: int = Field(default=5001, ge=1, le=65535)


class Ping(BaseModel):
    """ICMP echo requests at a fixed interval, answered by the destination."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    destination: str
    interval_ms: float = Field(default=100.0, gt=0)
    payload_bytes: int = Field(default=56, ge=16, le=9000)
    start_s: float = Field(default=0.0, ge=0)
    stop_s: float = Field(gt=0)


Traffic = UdpStream | Ping
