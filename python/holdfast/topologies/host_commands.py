"""Reads from shell commands of hosts what a topology says by itself: addresses, default routes, neighbours.

Other commands stay as they are, for hosts of live networks.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Callable, Sequence

from holdfast.topologies.draft import HostDraft

_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")

_NOTHING_MORE = (
    r"ip link set (?:dev )?(\S+) up",
    r"ifconfig (\S+) up",
    r"sysctl -w net\.ipv6\.conf\.(?:all|default|lo|\S+)\.disable_ipv6=1",
    r"ip (?:-4 )?(?:route|r) (?:del|delete) default.*",
    r"ethtool -[kK] \S+ .*",
    r"ethtool --offload \S+ .*",
)
"""Commands without effect here: cards are up anyway, there is no other default route, and hosts send no joined
segments."""


def card_of(name: str) -> int | None:
    """Return the number of the network card with a name such as ``eth1`` or ``h1-eth1``; None for other names."""
    found = re.fullmatch(r"(?:.*-)?eth([0-9]{1,3})", name)
    return int(found[1]) if found else None


def obey(host: HostDraft, command: str, card: Callable[[str], int | None] = card_of) -> bool:
    """Set fields of a host as a shell command would (addresses, routes, neighbours). Returns False for any other command.

    ``card``: returns the number of the network card with a name, or None if the host has none of that name here.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if words and words[0] == "sudo":
        words = words[1:]
    text = re.sub(r"^(?:/sbin/|/usr/sbin/|/bin/)", "", " ".join(words))
    if any(re.fullmatch(pattern, text) for pattern in _NOTHING_MORE):
        return True
    for pattern, take in _COMMANDS:
        if found := re.fullmatch(pattern, text):
            named = found.groupdict()
            number = card(named["dev"]) if named.get("dev") else 0
            return number is not None and take(host, number, named)
    return False


def _route(host: HostDraft, card: int, named: dict[str, str]) -> bool:
    if not _ADDRESS.fullmatch(named["gateway"]):
        return False
    if ":" in named["gateway"]:
        return False
    host.fields["gateway"] = named["gateway"]
    return True


def _neighbour(host: HostDraft, card: int, named: dict[str, str]) -> bool:
    if not _ADDRESS.fullmatch(named["ip"]):
        return False
    host.fields.setdefault("neighbours", {})[named["ip"]] = named["mac"]
    return True


def _address(host: HostDraft, card: int, named: dict[str, str]) -> bool:
    text, mask = named["ip"], named.get("mask")
    if mask:
        text = f"{text.partition('/')[0]}/{mask}"
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        return False
    fields = host.card(card)
    if isinstance(interface, ipaddress.IPv6Interface):
        if interface.is_link_local or "ipv6" in fields:
            return False
        fields["ipv6"] = str(interface)
    else:
        if fields.get("address_is_told"):
            return False
        fields["address"] = str(interface)
    return True


def _mac(host: HostDraft, card: int, named: dict[str, str]) -> bool:
    host.card(card)["mac"] = named["mac"]
    return True


def _connected(host: HostDraft, card: int, named: dict[str, str]) -> bool:
    """Return True for a route to the subnet of the card itself, which exists without the command."""
    address = host.card(card).get("address")
    try:
        return address is not None and ipaddress.ip_interface(address).network == ipaddress.ip_network(named["net"])
    except ValueError:
        return False


_DEV = r"(?: dev (?P<dev>\S+))?"
_MAC = r"(?P<mac>[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})"

_COMMANDS = (
    (rf"route add default gw (?P<gateway>\S+)(?:{_DEV}| (?P<eth>eth\d+))", _route),
    (rf"ip (?:-4 )?(?:route|r|ro) (?:add|replace|change) default via (?P<gateway>\S+){_DEV}", _route),
    (rf"ip (?:-4 )?(?:route|r|ro) (?:add|replace|change) 0\.0\.0\.0/0 via (?P<gateway>\S+){_DEV}", _route),
    (rf"arp(?: -i (?P<dev>\S+))? -s (?P<ip>\S+) {_MAC}", _neighbour),
    (rf"arp -s (?P<ip>\S+) {_MAC} -i (?P<dev>\S+)", _neighbour),
    (
        rf"ip (?:-[46] )?(?:neigh|neighbor|neighbour|n) (?:add|replace) (?P<ip>\S+) lladdr {_MAC}{_DEV}"
        r"(?: nud permanent)?",
        _neighbour,
    ),
    (
        rf"ip (?:-[46] )?(?:neigh|neighbor|neighbour|n) (?:add|replace) (?P<ip>\S+){_DEV} lladdr {_MAC}"
        r"(?: nud permanent)?",
        _neighbour,
    ),
    (rf"ip (?:-[46] )?(?:addr|address|a) (?:add|replace) (?P<ip>\S+)(?: brd \S+)?{_DEV}", _address),
    (r"ip (?:-[46] )?(?:addr|address|a) (?:add|replace) dev (?P<dev>\S+) (?P<ip>\S+)", _address),
    (r"ifconfig (?P<dev>\S+) (?:inet )?(?P<ip>[0-9.]+(?:/[0-9]+)?)(?: netmask (?P<mask>[0-9.]+))?(?: up)?", _address),
    (rf"ifconfig (?P<dev>\S+) hw ether {_MAC}", _mac),
    (rf"ip link set (?:dev )?(?P<dev>\S+) address {_MAC}", _mac),
    (rf"ip (?:-4 )?(?:route|r|ro) (?:add|replace) (?P<net>[0-9./]+){_DEV}", _connected),
)
"""The patterns of commands, each with the function that enters the command's words into a host."""


def take(host: HostDraft, commands: Sequence[str], card: Callable[[str], int | None] = card_of) -> None:
    """Set fields of a host as shell commands would, and keep all other commands as the host's ``commands``."""
    rest = [command for command in commands if not obey(host, command, card)]
    if rest:
        host.fields["commands"] = (*host.fields.get("commands", ()), *rest)
