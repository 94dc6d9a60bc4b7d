"""A gateway's configuration: the model of its YAML file. A wrong file raises an error that begins with file and line."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from holdfast import yaml_model
from holdfast.parameters import Checked
from holdfast.subscribers.authentication import LEAST_RATE_BIT_S, Verdict, unservable
from holdfast.subscribers.plane import Rates

Positive = Annotated[int, Field(gt=0)]
Rate = Annotated[int, Field(ge=LEAST_RATE_BIT_S, lt=1 << 63)]
Mac = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$")]
Duration = Annotated[float, Field(gt=0, le=86_400)]


class RateLimits(Checked):
    """Bits per second of a session; absent is unlimited."""

    up_bit_s: Rate | None = None
    down_bit_s: Rate | None = None

    def rates(self) -> Rates:
        """Return the limits, in bit/s each way, in the form that the user plane uses."""
        return Rates(self.up_bit_s, self.down_bit_s)


class User(Checked):
    """A subscriber that is known without RADIUS."""

    password: str
    ipv4: IPv4Address | None = None
    ipv6_prefix: IPv6Network | None = None
    delegated: IPv6Network | None = None
    rates: RateLimits | None = None

    @model_validator(mode="after")
    def _servable(self) -> User:
        why = unservable(self.verdict())
        if why is not None:
            raise ValueError(why)
        return self

    def verdict(self) -> Verdict:
        """Return the verdict on a login with this user's right password: addresses, prefixes and rates."""
        rates = None if self.rates is None else self.rates.rates()
        return Verdict(True, ipv4=self.ipv4, ipv6_prefix=self.ipv6_prefix, delegated=self.delegated, rates=rates)


class Ipv6(Checked):
    """The source of router advertisements' and delegated prefixes."""

    prefixes: IPv6Network
    delegated: IPv6Network | None = None
    delegated_length: Annotated[int, Field(ge=48, le=64)] = 56
    dns: tuple[IPv6Address, ...] = ()
    lease_s: Annotated[int, Field(ge=60, le=31_536_000)] = 3600

    @model_validator(mode="after")
    def _fits(self) -> Ipv6:
        if self.prefixes.prefixlen > 64:
            raise ValueError("prefixes must hold a /64 at least")
        if self.delegated is not None:
            if self.delegated.prefixlen > self.delegated_length:
                raise ValueError(f"delegated must hold a /{self.delegated_length} at least")
            if self.delegated.overlaps(self.prefixes):
                raise ValueError("delegated and prefixes overlap")
        return self


class Limits(Checked):
    """The limits of one subscriber, one line and all together."""

    sessions: Annotated[int, Field(gt=0, le=65_534)] = 65_534
    sessions_per_line: Positive = 8
    sessions_per_mac: Positive = 1
    padi_per_s: Positive = 5000
    padi_per_line_s: Positive = 10
    setups: Positive = 2000
    setup_timeout_s: Duration = 30.0


class RadiusServer(Checked):
    """One server. Requests go to it from this gateway with its secret."""

    host: IPv4Address | IPv6Address
    secret: Annotated[str, Field(min_length=8)]
    authentication_port: Annotated[int, Field(gt=0, le=65_535)] = 1812
    accounting_port: Annotated[int, Field(gt=0, le=65_535)] = 1813


class DynamicAuthorization(Checked):
    """CoA and Disconnect (RFC 5176): where to listen, and who may ask. Each client has its secret.

    Without ``require_message_authenticator``, the Request Authenticator is proof enough. Without ``require_event_timestamp``, a
    request without one is obeyed, and again when somebody repeats it later (RFC 5176, section 6.3).
    """

    host: IPv4Address | IPv6Address = IPv4Address("127.0.0.1")
    port: Annotated[int, Field(ge=0, le=65_535)] = 3799
    clients: dict[IPv4Address | IPv6Address, Annotated[str, Field(min_length=8)]]
    window_s: Duration = 300.0
    require_message_authenticator: bool = True
    require_event_timestamp: bool = True


def _fits_an_attribute(value: str) -> str:
    if len(value.encode()) > 253:
        raise ValueError("it is longer than a RADIUS attribute (253 bytes)")
    return value


class Radius(Checked):
    """RADIUS servers in the order of preference. Without ``nas_identifier`` and ``nas_address``, it is known by its name.

    ``status_server``: a silent server is asked whether it is alive (RFC 5997), if there is another one.
    """

    servers: Annotated[tuple[RadiusServer, ...], Field(min_length=1)]
    nas_identifier: Annotated[str, AfterValidator(_fits_an_attribute)] = ""
    nas_address: IPv4Address | None = None
    timeout_s: Duration = 2.0
    tries: Annotated[int, Field(gt=0, le=10)] = 3
    dead_s: Duration = 30.0
    interim_s: Annotated[int, Field(ge=0, le=86_400)] = 600
    require_message_authenticator: bool = True
    status_server: bool = True
    dynamic_authorization: DynamicAuthorization | None = None


class Configuration(Checked):
    """A gateway."""

    name: Annotated[str, Field(min_length=1, max_length=64)] = "holdfast"
    mac: Mac
    services: tuple[str, ...] = ()
    max_payload: Annotated[int, Field(ge=1492, le=9000)] = 1492
    authentication: Annotated[tuple[Literal["chap", "pap"], ...], Field(min_length=1)] = ("chap", "pap")
    address: IPv4Address | None = None
    pools: dict[str, IPv4Network] = {}
    dns: Annotated[tuple[IPv4Address, ...], Field(max_length=2)] = ()
    ipv6: Ipv6 | None = None
    rates: RateLimits = RateLimits()
    limits: Limits = Limits()
    single_session: Literal["off", "replace", "refuse"] = "off"
    echo_interval_s: Duration = 30.0
    echo_failures: Annotated[int, Field(gt=0, le=100)] = 3
    advertisement_interval_s: Annotated[float, Field(ge=4, le=1800)] = 600.0
    users: dict[str, User] = {}
    radius: Radius | None = None
    state: Path | None = None
    metrics_port: Annotated[int, Field(ge=0, le=65_535)] | None = None

    @field_validator("mac")
    @classmethod
    def _unicast(cls, value: str) -> str:
        if int(value[:2], 16) & 1 or not int(value.replace(":", ""), 16):
            raise ValueError("the address of one station is expected")
        return value

    @model_validator(mode="after")
    def _coherent(self) -> Configuration:
        if not self.pools and self.ipv6 is None:
            raise ValueError("pools or ipv6: subscribers need addresses")
        if self.pools and self.address is None:
            raise ValueError("address: with pools, the gateway needs an IPv4 address of its own")
        networks = list(self.pools.items())
        for at, (name, network) in enumerate(networks):
            for other, overlapping in networks[:at]:
                if network.overlaps(overlapping):
                    raise ValueError(f"pools {other!r} and {name!r} overlap")
        if self.radius is not None and self.users:
            raise ValueError("users and radius: one of them is expected")
        if self.radius is None and not self.users:
            raise ValueError("users or radius: somebody must know the subscribers")
        if self.radius is not None and not self.radius.nas_identifier and self.radius.nas_address is None:
            # Servers must know who asks (RFC 2865, section 4.1).
            object.__setattr__(self, "radius", self.radius.model_copy(update={"nas_identifier": self.name}))
        return self

    @property
    def mac_bytes(self) -> bytes:
        """The gateway's MAC address as 6 bytes."""
        return bytes.fromhex(self.mac.replace(":", ""))


def read(path: Path) -> Configuration:
    """Return the configuration in a file. Raises :class:`holdfast.errors.ScenarioError` if the file has a mistake."""
    return yaml_model.read(path, Configuration)
