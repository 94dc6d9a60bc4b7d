"""The entries of a session in a switch, and the session that a switch's entry stands for. Pure functions; nothing here writes.

The entry of ``sessions`` carries as metadata what no packet needs: rates as they were given, the usage that the session had on
other planes, and the MRU. So a controller that starts anew reads sessions back whole.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from holdfast.apps.bng import program
from holdfast.apps.bng.edges import CorePort, Edges, control_meters, mac_bytes, node_meters
from holdfast.apps.bng.frames import check_line
from holdfast.control.desired import Desired, Scope, Writer, read_state
from holdfast.control.entities import Meter
from holdfast.control.tables import TableEntry
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import Client
from holdfast.subscribers.plane import Line, Rates, Session, Usage

NO_USAGE = Usage()

_FORMAT = struct.Struct("!BHBBQQQQQQQ")
_VERSION = 1
_UNLIMITED = (1 << 64) - 1
_IPV4_HEADERS = 40
"""The bytes of IPv4 and TCP headers without options, which the MSS does not include (RFC 6691)."""

_BURST_S = 0.1
_LEAST_BURST_BYTES = 2 * 1600


@dataclass(frozen=True)
class Way:
    """The path of frames to access ports. ``trunk``: the port towards a balancer; None without a balancer."""

    edges: Edges
    trunk: int | None = None

    def out(self, line: Line) -> int:
        """Return the output port towards an access line: its access port, or the trunk of a plane behind a balancer."""
        return line.port if self.trunk is None else self.trunk


def check(session: Session) -> None:
    """Raise :class:`NetworkError` for a session with a value that no user plane can forward."""
    name = f"session {session.session_id}"
    if not 1 <= session.session_id <= 65534:
        raise NetworkError(f"{name}: identifiers are 1 to 65534")
    check_line(session.line)
    if len(session.mac) != 6 or session.mac[0] & 1 or not any(session.mac):
        raise NetworkError(f"{name}: {session.mac.hex(':')!r} is no station's MAC address")
    if not 0 <= session.magic < 1 << 32:
        raise NetworkError(f"{name}: the magic number has more than 32 bits")
    if not 68 <= session.peer_mru <= 65535:
        raise NetworkError(f"{name}: an MRU of {session.peer_mru} is not in 68 to 65535")
    if session.ipv6_prefix is not None and session.ipv6_prefix.prefixlen != 64:
        raise NetworkError(f"{name}: {session.ipv6_prefix} is no /64")
    if session.delegated is not None and not 1 <= session.delegated.prefixlen <= 64:
        raise NetworkError(f"{name}: the delegated prefix {session.delegated} is longer than /64")
    for prefix in (session.ipv6_prefix, session.delegated):
        if prefix is not None and int(prefix.network_address) >> 64 == 0:
            raise NetworkError(f"{name}: {prefix} is no prefix of hosts")
    if session.ipv4 is not None and not int(session.ipv4):
        raise NetworkError(f"{name}: {session.ipv4} is no host's address")
    for direction, rate in (("up", session.rates.up_bit_s), ("down", session.rates.down_bit_s)):
        if rate is not None and not 8 <= rate < 1 << 63:
            raise NetworkError(f"{name}: a rate {direction} of {rate} bit/s is not in 8 to 2^63")


def largest_mss(session: Session) -> int:
    """Return the largest MSS in bytes to which the TCP SYNs of a session are clamped over IPv4; over IPv6 it is 20 bytes smaller.

    Return ``UNCLAMPED`` if the session has no clamping.
    """
    return max(session.peer_mru - _IPV4_HEADERS, 21) if session.mss_clamp else program.UNCLAMPED


def session_entries(session: Session, way: Way, earlier: Usage = NO_USAGE) -> list[TableEntry]:
    """Return the table entries of a session. ``earlier``: usage that the switch's registers do not contain.

    Raise :class:`NetworkError` for an impossible session, or one on a port that is no access port.
    """
    check(session)
    line, edges = session.line, way.edges
    port = edges.access_port(line.port)
    if port is None:
        raise NetworkError(f"session {session.session_id}: port {line.port} is no access port")
    mask = 0 if session.delegated is None else int(session.delegated.netmask) >> 64
    mss = largest_mss(session)
    entries = [
        TableEntry(
            program.SESSIONS,
            {"session_id": session.session_id},
            program.SUBSCRIBER,
            {
                "port": line.port,
                "s_vid": line.s_tag,
                "c_vid": line.c_tag,
                "mac": int.from_bytes(session.mac, "big"),
                "magic": session.magic,
                "mss": mss,
                "ipv4": 0 if session.ipv4 is None else int(session.ipv4),
                "interface": _low(session.ipv6_interface),
                "network": _high(session.ipv6_prefix),
                "delegation": _high(session.delegated),
                "delegation_mask": mask or (1 << 64) - 1,
            },
            metadata=_metadata(session, earlier),
        )
    ]
    deliver: dict[str, int | str] = {
        "session": session.session_id,
        "port": way.out(line),
        "line": line.port,
        "tpid": port.s_tpid,
        "s_vid": line.s_tag,
        "c_vid": line.c_tag,
        "src_mac": int.from_bytes(mac_bytes(port.mac), "big"),
        "dst_mac": int.from_bytes(session.mac, "big"),
        "mru": session.peer_mru,
        "mss": mss,
    }
    if session.ipv4 is not None:
        entries.append(TableEntry(program.SUBSCRIBERS_V4, {"address": int(session.ipv4)}, program.DELIVER, deliver))
    for prefix in dict.fromkeys((session.ipv6_prefix, session.delegated)):
        if prefix is not None:
            match = {"prefix": (int(prefix.network_address) >> 64, prefix.prefixlen)}
            entries.append(TableEntry(program.SUBSCRIBERS_V6, match, program.DELIVER_V6, deliver))
    return entries


def session_of(entry: TableEntry) -> tuple[Session, Usage]:
    """Return the session that an entry of ``sessions`` stands for, and its usage before the registers began to count.

    Raise :class:`NetworkError` if another program or version wrote the entry.
    """
    params = {name: int(value) for name, value in entry.params.items()}
    session_id = entry.match["session_id"]
    assert isinstance(session_id, int)
    if len(entry.metadata) != _FORMAT.size or entry.metadata[0] != _VERSION:
        raise NetworkError(f"session {session_id} in the switch was not written by this version of the gateway")
    _, mru, has_interface, length, high, up, down, *used = _FORMAT.unpack(entry.metadata)
    session = Session(
        session_id,
        Line(params["port"], params["s_vid"], params["c_vid"]),
        params["mac"].to_bytes(6, "big"),
        params["magic"],
        mru,
        params["mss"] != program.UNCLAMPED,
        IPv4Address(params["ipv4"]) if params["ipv4"] else None,
        IPv6Address(high << 64 | params["interface"]) if has_interface else None,
        IPv6Network((params["network"] << 64, 64)) if params["network"] else None,
        IPv6Network((params["delegation"] << 64, length)) if length else None,
        Rates(*(None if rate == _UNLIMITED else rate for rate in (up, down))),
    )
    return session, Usage(*used)


def _metadata(session: Session, earlier: Usage) -> bytes:
    interface, delegated = session.ipv6_interface, session.delegated
    return _FORMAT.pack(
        _VERSION,
        session.peer_mru,
        interface is not None,
        0 if delegated is None else delegated.prefixlen,
        0 if interface is None else int(interface) >> 64,
        *(_UNLIMITED if rate is None else rate for rate in (session.rates.up_bit_s, session.rates.down_bit_s)),
        earlier.packets_up,
        earlier.bytes_up,
        earlier.packets_down,
        earlier.bytes_down,
    )


def _low(address: IPv6Address | None) -> int:
    return 0 if address is None else int(address) & (1 << 64) - 1


def _high(prefix: IPv6Network | None) -> int:
    return 0 if prefix is None else int(prefix.network_address) >> 64


def meter_rates(bit_s: int | None) -> tuple[int, int, int, int] | None:
    """Return a meter's configuration for the rate ``bit_s`` in bit/s; None if it is None, for no limit.

    It is (committed rate, burst, peak rate, burst) in bytes: a tenth of a second may come at once, and two large packets always.
    """
    if bit_s is None:
        return None
    rate = bit_s // 8
    burst = max(round(rate * _BURST_S), _LEAST_BURST_BYTES)
    return rate, burst, rate, burst


_EDGES: Scope = {
    TableEntry: (program.PORTS, program.OWN_V4, program.OWN_V6, program.IPV4_LPM, program.IPV6_LPM),
    Meter: ((program.CONTROL_RATE, None),),
}


def configure_edges(client: Client, edges: Edges, trunk: int | None = None, *, forwards: bool = True) -> None:
    """Write the ports, routes and rates of :func:`edge_configuration` to a switch, and delete other entries of these kinds.

    ``trunk`` and ``forwards`` are as there.
    """
    writer = Writer(client)
    writer.adopt(read_state(client, _EDGES))
    writer.write(edge_configuration(edges, trunk, forwards=forwards))


def edge_configuration(edges: Edges, trunk: int | None = None, *, forwards: bool = True) -> Desired:
    """Return the roles of ports, a plane's routes, and the rates of packets to the controller.

    ``trunk``: behind a load balancer, the port to it, which is the only access port; else None. ``forwards``: whether the switch is
    a forwarding plane, so that it gets the core ports and routes.
    """
    line, cells = control_meters(edges.control)
    committed, peak = node_meters(edges.control)
    meters = [
        Meter(program.LINE_RATE, None, line),
        Meter(program.NODE_COMMITTED, None, committed),
        Meter(program.NODE_PEAK, None, peak),
        *(Meter(program.CONTROL_RATE, *cell) for cell in cells.items()),
    ]
    entries = []
    access = [(port.port, port.mac) for port in edges.access] if trunk is None else [(trunk, edges.access[0].mac)]
    for number, mac in access:
        entries.append(_port(number, program.ACCESS, mac))
    if forwards:
        entries += [_port(port.port, program.CORE, port.mac) for port in edges.core]
        for port in edges.core:
            entries += own_addresses(port, port.port, (program.OWN_V4, program.OWN_V6, program.OWN))
        for route in edges.routes:
            prefix = route.prefix
            table, key, action = (
                (program.IPV4_LPM, "hdr.ipv4.dst_addr", program.TO_CORE)
                if prefix.version == 4
                else (program.IPV6_LPM, "hdr.ipv6.dst_addr", program.TO_CORE_V6)
            )
            hop = {
                "port": route.port,
                "src_mac": int.from_bytes(mac_bytes(edges.core_port(route.port).mac), "big"),
                "dst_mac": int.from_bytes(mac_bytes(route.next_hop_mac), "big"),
                "largest": route.mtu,
            }
            match = {key: (int(prefix.network_address), prefix.prefixlen)} if prefix.prefixlen else {}
            entries.append(TableEntry(table, match, action, hop))
    return (*meters, *entries)


def own_addresses(core: CorePort, number: int, names: tuple[str, str, str]) -> list[TableEntry]:
    """Return the entries by which a switch answers at port ``number`` for the addresses of a core port.

    ``names``: the tables for IPv4 and IPv6, and the action.
    """
    v4, v6, own = names
    mac = {"mac": int.from_bytes(mac_bytes(core.mac), "big")}
    return [
        TableEntry(v4 if address.version == 4 else v6, {"port": number, "address": int(address)}, own, mac)
        for address in core.addresses
    ]


def _port(number: int, action: str, mac: str) -> TableEntry:
    return TableEntry(program.PORTS, {"port": number}, action, {"mac": int.from_bytes(mac_bytes(mac), "big")})
