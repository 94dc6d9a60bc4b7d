"""Subscribers on a Linux interface: :class:`subscriber.Subscriber` over a packet socket, with a TUN device.

For demonstrations and tests. It needs root, and no PPP driver.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from holdfast.errors import LiveError
from holdfast.subscribers.loop_clock import AsyncClock
from holdfast.subscribers.pppoe import MRU, OVERHEAD
from holdfast.subscribers.subscriber import Account, Subscriber

_ETH_P_ALL = 3
_SIOCGIFMTU = 0x8921
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_TAGS = (b"\x81\x00", b"\x88\xa8")
_BUFFER = 8 << 20
_SO_RCVBUFFORCE = 33
_PACKET_IGNORE_OUTGOING, _SOL_PACKET = 23, 263


def mtu_of(interface: str) -> int | None:
    """Return an interface's MTU in bytes; None if this network namespace has no such interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe, _SIOCGIFMTU, struct.pack("16si16x", interface.encode(), 0))
        except OSError:
            return None
    return int(struct.unpack("16si16x", answer)[1])


class Street:
    """Subscribers behind one interface, each with VLAN tags of its own, outer first. Must be made within a running event loop."""

    def __init__(self, interface: str) -> None:
        """Open a packet socket on an interface. Raises :class:`LiveError` if it cannot be opened."""
        self._loop = asyncio.get_running_loop()
        self.timer = AsyncClock(self._loop)
        self._hosts: dict[bytes, Callable[[bytes], None]] = {}
        self.unsent = 0
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
            self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
            self._socket.bind((interface, _ETH_P_ALL))
            self.mac: bytes = self._socket.getsockname()[4]
        except OSError as error:
            raise LiveError(f"cannot open {interface}: {error.strerror or error}") from None
        self._loop.add_reader(self._socket, self._read)

    def add(
        self,
        account: Account,
        mac: bytes,
        *,
        seed: int,
        tags: tuple[int, ...] = (),
        up: Callable[[Subscriber], None] | None = None,
        packet: Callable[[bytes], None] | None = None,
    ) -> Subscriber:
        """Add a subscriber to the interface and return it; it does not dial yet.

        ``seed``: of its random numbers. ``tags``: the VLAN tags of its access line, outermost first. ``up`` is called with the
        subscriber when its session is up, ``packet`` with each IP packet that it receives.
        """
        inserted = b"".join(b"\x81\x00" + tag.to_bytes(2, "big") for tag in tags)

        def send(frame: bytes) -> None:
            try:
                self._socket.send(frame[:12] + inserted + frame[12:])
            except OSError:
                self.unsent += 1

        host = Subscriber(account, mac, self.timer, send, seed=seed, up=up, packet=packet)
        self._hosts[mac] = host.receive
        return host

    def _read(self) -> None:
        for _ in range(64):
            try:
                frame = self._socket.recv(65_536)
            except OSError:
                return
            host = self._hosts.get(frame[:6])
            if host is None:
                continue
            while frame[12:14] in _TAGS:  # the kernel has taken off the outer one already
                frame = frame[:12] + frame[16:]
            host(frame)

    def close(self) -> None:
        """Close the packet socket, so that the subscribers receive nothing any more."""
        self._loop.remove_reader(self._socket)
        self._socket.close()


class Tunnel:
    """A TUN device that has a subscriber's addresses while its session is up, and its default routes."""

    def __init__(self, name: str) -> None:
        """Make a TUN device. Raises :class:`LiveError` if it cannot be made."""
        self.name = name
        self.packets_out = 0
        try:
            self._file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(self._file, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
        except OSError as error:
            raise LiveError(f"cannot make {name}: {error.strerror or error}") from None
        self._host: Subscriber | None = None

    def join(self, host: Subscriber) -> None:
        """Send the kernel's packets on this TUN device to ``host``'s session from now on."""
        self._host = host
        asyncio.get_running_loop().add_reader(self._file, self._read)

    def up(self, host: Subscriber) -> None:
        """Give the TUN device the session's MTU, addresses and routes. Raises :class:`LiveError` if the kernel refuses one."""
        mtu = min(host.mru, host.peer_mru)
        _ip("link", "set", self.name, "mtu", str(mtu), "up")
        _ip("addr", "flush", "dev", self.name)
        if any(host.ipv4):
            _ip("addr", "add", f"{IPv4Address(host.ipv4)}/32", "dev", self.name)
            _ip("route", "replace", "default", "dev", self.name)
        if host.ipv6_prefix is not None:
            with suppress(OSError):  # IPv6 may be off for new devices
                Path(f"/proc/sys/net/ipv6/conf/{self.name}/disable_ipv6").write_text("0", encoding="ascii")
            prefix, length = host.ipv6_prefix
            address = IPv6Address(prefix[:8] + host.interface)
            _ip("-6", "addr", "add", f"{address}/{length}", "dev", self.name, "nodad")
            _ip("-6", "route", "replace", "default", "dev", self.name)

    def write(self, packet: bytes) -> None:
        """Hand a packet from the session to the kernel; if the kernel refuses it, the packet is lost."""
        try:
            os.write(self._file, packet)
        except OSError:
            return

    def _read(self) -> None:
        for _ in range(64):
            try:
                packet = os.read(self._file, 65_536)
            except OSError:
                return
            # The kernel's own link-local packets are not the subscriber's: its state machine sends those.
            if self._host is not None and not (packet[0] >> 4 == 6 and packet[8:10] == b"\xfe\x80"):
                self.packets_out += 1
                self._host.send(packet)

    def close(self) -> None:
        """Remove the device, with its addresses and routes."""
        asyncio.get_running_loop().remove_reader(self._file)
        os.close(self._file)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LiveError(f"ip {' '.join(words)}: {done.stderr.strip()}")


async def dial(interface: str, account: Account, tunnel_name: str, say: Callable[[str], None]) -> None:
    """Dial, and keep the subscriber online until cancelled.

    ``say`` is called with a line of text for the user at each change. Raise :class:`LiveError` if the gateway refuses the
    subscriber, if the tunnel cannot be set up, or if the interface's MTU is too small for the account's payload.
    """
    mtu = mtu_of(interface)
    if account.max_payload > MRU and mtu is not None and mtu < account.max_payload + OVERHEAD:
        raise LiveError(
            f"{interface}: its MTU is {mtu}, and a payload of {account.max_payload} needs {account.max_payload + OVERHEAD}"
        )
    street, tunnel = Street(interface), Tunnel(tunnel_name)
    refused: list[LiveError] = []

    def up(host: Subscriber) -> None:
        try:
            tunnel.up(host)
        except LiveError as error:
            refused.append(error)

    host = street.add(account, street.mac, seed=int.from_bytes(os.urandom(8), "big"), up=up, packet=tunnel.write)
    tunnel.join(host)
    host.dial()
    try:
        while True:
            while host.state != "up":
                if host.state == "failed" and account.redial_s is None:
                    raise LiveError(f"{account.user}: {host.reason}")
                await asyncio.sleep(0.05)
            if refused:
                raise refused[0]
            four = str(IPv4Address(host.ipv4)) if any(host.ipv4) else "no IPv4"
            six = "no IPv6" if host.ipv6_prefix is None else f"{IPv6Address(host.ipv6_prefix[0])}/{host.ipv6_prefix[1]}"
            given = (
                "" if host.delegated is None else f", {IPv6Address(host.delegated[0])}/{host.delegated[1]} delegated"
            )
            say(f"{account.user} is online: session {host.session}, {four}, {six}{given}, by {tunnel_name}")
            while host.state == "up":
                await asyncio.sleep(0.2)
            say(f"{account.user} is offline: {host.reason}")
    finally:
        host.hang_up()
        tunnel.close()
        street.close()
