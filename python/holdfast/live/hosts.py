"""Linux hosts of a live network: a namespace for each host of a topology, and commands that run in them.

The measurements made with them are not known here.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Self

from holdfast import _core
from holdfast.control.membership.overlay import link_local
from holdfast.errors import LiveError
from holdfast.host import Address, Host, card_name, mac_text
from holdfast.measurements import InterfaceCounters, Load
from holdfast.topology import Topology

PACKAGES = {"ip": "iproute2", "ping": "iputils-ping", "iperf3": "iperf3"}
"""The Debian package of each tool."""

COMMAND_S = 20.0
"""The time limit in seconds of each of the commands that a host runs at the start."""


def check_machine(tools: Sequence[str] = ("ip", "ping", "iperf3")) -> None:
    """Raise :class:`LiveError` with all rights and tools that the machine lacks for a live network, if it lacks any."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        packages = ", ".join(PACKAGES[tool] for tool in missing)
        raise LiveError(f"not installed: {', '.join(missing)} (Debian packages {packages})")
    if reason := _core.interfaces_ready():
        raise LiveError(f"cannot open network interfaces: {reason}")


@contextmanager
def preferred() -> Iterator[None]:
    """Run the context with a higher priority (nice -15) for this thread and the processes that it starts, if that is permitted.

    So other work of the machine delays the network's events as little as possible.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    try:
        yield
    finally:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


class LiveHost:
    """A host of a live network: a network namespace with the host's network cards, in which commands run.

    ``cards``: the names of its interfaces, by the topology's port of the host; with a VLAN, of those that are tagged.
    """

    def __init__(self, host: Host, namespace: _core.Namespace, stack: ExitStack) -> None:
        self.host, self.cards = host, dict[int, str]()
        self._own = namespace
        """Its namespace, or if the host is a namespace that exists already, the one in which its cards are made."""
        self._foreign = None if host.namespace is None else stack.enter_context(_Foreign(host.name, host.namespace))

    @property
    def name(self) -> str:
        """The namespace's name in ``ip netns``, or the text that the topology has for one that existed already."""
        return self._own.name if self.host.namespace is None else self.host.namespace

    @property
    def exec_prefix(self) -> list[str]:
        """The words that must precede a command to run it in the host."""
        return self._own.exec_prefix if self._foreign is None else self._foreign.exec_prefix

    def popen(self, command: Sequence[str] | str, **options: Any) -> subprocess.Popen[Any]:
        """Start a command in the host, words or text for the shell; ``options`` are those of :class:`subprocess.Popen`.

        It is killed at the end of the network, if it still runs.
        """
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        if self._foreign is not None:
            options["env"] = {**(options.get("env") or os.environ), _MARK: self._foreign.mark}
        return subprocess.Popen([*self.exec_prefix, *words], **options)

    def run(
        self,
        command: Sequence[str] | str,
        *,
        check: bool = True,
        timeout_s: float | None = None,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the host and wait for it; return its exit code and what it wrote.

        Raises :class:`LiveError` after ``timeout_s`` seconds, when its processes are killed, and with ``check`` if it fails.
        ``input``: what it reads from its standard input; nothing if None.
        """
        what = command if isinstance(command, str) else shlex.join(command)
        source = subprocess.DEVNULL if input is None else subprocess.PIPE
        # In files: a process that it leaves running would keep a pipe open.
        with _text_file() as out, _text_file() as err:
            process = self.popen(command, stdin=source, stdout=out, stderr=err, start_new_session=True, text=True)
            try:
                process.communicate(input, timeout=timeout_s)
            except BaseException as error:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise LiveError(f"host {self.host.name!r}: {what!r} did not end within {timeout_s:g} s") from None
                raise
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        if check and process.returncode:
            said = (texts[1].strip() or texts[0].strip() or "it wrote nothing")[-1000:]
            raise LiveError(f"host {self.host.name!r}: {what!r} failed with exit code {process.returncode}: {said}")
        return subprocess.CompletedProcess(process.args, process.returncode, *texts)

    def run_commands(self) -> None:
        """Run the host's own ``commands`` in turn. Raises :class:`LiveError` at the first one that fails or takes too long."""
        for command in self.host.commands:
            try:
                self.run(command, timeout_s=COMMAND_S)
            except LiveError as error:
                late = f"did not end within {COMMAND_S:g} s" in str(error)
                raise LiveError(f"{error}; a command that goes on ends with '&'" if late else str(error)) from None

    def send_load(
        self, interface: str, frames: list[bytes], *, duration_s: float, packets_per_s: float | None = None
    ) -> Load:
        """Send frames from an interface of the host and return counts; see :meth:`holdfast._core.Namespace.send_load`.

        They are sent as fast as possible, or at ``packets_per_s``.
        """
        return self._here().send_load(interface, frames, duration_s=duration_s, packets_per_s=packets_per_s)

    def interface_counters(self, interface: str) -> InterfaceCounters:
        """Return the kernel's counters of packets and bytes of an interface of the host."""
        return self._here().interface_counters(interface)

    def set_link(self, interface: str, up: bool) -> None:
        """Set an interface of the host up or down."""
        self._ip([f"link set dev {interface} {'up' if up else 'down'}"])

    def _here(self) -> _core.Namespace:
        if self._foreign is not None:
            raise LiveError(f"host {self.host.name!r}: not there for a namespace that existed already ({self.name})")
        return self._own

    def _ip(self, lines: Sequence[str]) -> None:
        """Run lines of ``ip -batch`` in the host. Raises :class:`LiveError` with what ip says."""
        try:
            self.run(["ip", "-batch", "-"], input="".join(f"{line}\n" for line in lines), timeout_s=COMMAND_S)
        except LiveError as error:
            raise LiveError(f"{error} (of: {'; '.join(lines)})") from None

    def add_card(self, port: int) -> str:
        """Add the network card of the host's port, without addresses; return the name of the interface at its outer end.

        Raises :class:`LiveError` if the kernel refuses it.
        """
        mac, vlan = self.host.cards[port].mac, self.host.vlan
        # The kernel's names of a namespace that existed already may be taken.
        taken = set() if self._foreign is None else self._foreign.interfaces()
        name = next(name for number in range(port, 10_000) if (name := f"eth{number}") not in taken)
        outer = self._own.add_veth(name, mac=mac)
        if self._foreign is not None:
            self._own.run(["ip", "link", "set", "dev", name, "netns", self._foreign.path])
            self._ipv6(name, on=False)
            self._ip([f"link set dev {name} up"])
        self.cards[port] = name
        if vlan is not None:
            self.cards[port] = tagged = f"{name}.{vlan}"
            try:
                self._ip([f"link add link {name} name {tagged} type vlan id {vlan}"])
            except LiveError as error:
                if "Unknown device type" in str(error):
                    raise LiveError(f"host {self.host.name!r}: this kernel has no VLANs (its module 8021q)") from None
                raise
            self._ipv6(tagged, on=False)
            self._ip([f"link set dev {tagged} up"])
        return outer

    def _ipv6(self, interface: str, *, on: bool) -> None:
        # A kernel without IPv6 has no such file, and nothing to disable.
        file = f"/proc/sys/net/ipv6/conf/{interface}"
        settings = (
            f"cd {file} && echo 0 > accept_ra && echo 0 > router_solicitations && echo {int(not on)} > disable_ipv6"
        )
        self.run(f"test ! -e {file} || ({settings})", timeout_s=COMMAND_S)

    def configure(self, known: Mapping[Address, bytes]) -> None:
        """Give all cards of the host their addresses and routes, and add neighbour entries for the addresses in ``known``."""
        host, lines = self.host, []
        for port, device in self.cards.items():
            card = host.cards[port]
            lines.append(f"address add {card.address} dev {device}")
            if card.ipv6 is not None:
                self._ipv6(device, on=True)
                lines.append(f"address add {card.ipv6} dev {device} nodad")
                # From it MLD speaks (RFC 3810, 5.2.13); the kernel gives none to an interface that was up without IPv6.
                lines.append(f"address replace {link_local(card.mac)}/64 dev {device} nodad")
        first = next(iter(self.cards.values()))
        for address, mac in known.items():
            device = self._device_to(address, first)
            lines.append(f"neighbour replace {address} lladdr {mac_text(mac)} dev {device} nud permanent")
        if host.gateway is not None:
            device = self._device_to(host.gateway, first)
            lines.append(f"route add default via {host.gateway} dev {device} onlink")
            if host.ipv6 is not None and 0 in self.cards:
                lines.append(f"route add default via {host.ipv6_gateway} dev {self.cards[0]}")
        self._ip(lines)

    def _device_to(self, address: Address, default: str) -> str:
        port = self.host.card_to(address)
        return default if port is None else self.cards.get(port, default)


_MARK = "HOLDFAST_LIVE_HOST"
"""An environment variable of the processes started in a namespace that existed already, by which they are found at the
end."""


def _text_file() -> IO[str]:
    return TemporaryFile("w+", encoding="utf-8", errors="replace")


class _Foreign:
    """A network namespace that existed already. What was started in it is killed at the end, and nothing else is touched.

    The cards vanish with their outer interfaces, and the kernel removes addresses, neighbours and routes with them.
    """

    def __init__(self, host: str, name: str) -> None:
        self.mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        kind, _, number = name.partition(":")
        path = f"/proc/{number}/ns/net" if kind == "pid" else name if name.startswith("/") else f"/run/netns/{name}"
        if kind != "pid" and not name.startswith("/") and not Path(path).exists():
            path = f"/var/run/netns/{name}"
        try:
            # Opened, so that it is the same one whatever becomes of the name.
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LiveError(f"host {host!r}: no network namespace {name!r}: {path}: {error.strerror}") from None
        self.path = f"/proc/{os.getpid()}/fd/{self._file}"
        self.exec_prefix = ["nsenter", f"--net={self.path}", "--"]
        found = subprocess.run([*self.exec_prefix, "true"], capture_output=True, text=True, check=False)
        if found.returncode:
            os.close(self._file)
            raise LiveError(f"host {host!r}: {name!r} is no network namespace: {found.stderr.strip()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        wanted = f"{_MARK}={self.mark}".encode()
        for _ in range(3):  # A process that starts others meanwhile is found, and then they are.
            for environment in Path("/proc").glob("[0-9]*/environ"):
                with suppress(OSError):
                    if wanted in environment.read_bytes().split(b"\0"):
                        os.kill(int(environment.parent.name), signal.SIGKILL)
        os.close(self._file)

    def interfaces(self) -> set[str]:
        """Return the names of the interfaces that are in the namespace now."""
        listed = subprocess.run(
            [*self.exec_prefix, "ip", "-json", "link"], capture_output=True, text=True, check=True, timeout=COMMAND_S
        )
        return {each["ifname"] for each in json.loads(listed.stdout)}


@contextmanager
def hosts(network_topology: Topology) -> Iterator[tuple[dict[str, LiveHost], dict[str, str]]]:
    """Yield the running hosts by name, and the names of the outer interfaces of their cards by :func:`card_name`.

    Their ``commands`` have run. At the end of the context everything that was added is removed.
    """
    with ExitStack() as stack:
        running: dict[str, LiveHost] = {}
        interfaces: dict[str, str] = {}
        for name, host in network_topology.hosts.items():
            label = name if name.isascii() else f"h{host.index}"
            running[name] = live = LiveHost(host, stack.enter_context(_core.Namespace(label)), stack)
            for place in network_topology.attachments(name):
                interfaces[card_name(name, place.card)] = live.add_card(place.card)
            live.configure(network_topology.known_neighbours(name))
        for live in running.values():
            live.run_commands()
        yield running, interfaces


def start(namespace: LiveHost | _core.Namespace, *command: str) -> subprocess.Popen[str]:
    """Start a command in a namespace, with its standard error merged into its standard output."""
    return subprocess.Popen(
        [*namespace.exec_prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


_SERVERS_START_S = 60
"""The time in seconds that iperf3's servers may take to start; on an idle machine it is milliseconds."""


def wait_listening(namespace: LiveHost, ports: tuple[int, ...]) -> None:
    """Wait until iperf3's servers accept connections. Raises :class:`LiveError` if they do not in time."""
    deadline = time.monotonic() + _SERVERS_START_S
    wanted = {f":{port:04X}" for port in ports}
    while time.monotonic() < deadline:
        text = namespace.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], check=False).stdout
        if all(any(port in line and " 0A " in line for line in text.splitlines()) for port in wanted):
            return
        time.sleep(0.02)
    raise LiveError(f"iperf3's servers did not start within {_SERVERS_START_S} s")


def iperf3_report(output: str, name: str) -> dict[str, Any]:
    """Return the JSON report that iperf3 printed. Raises :class:`LiveError` with iperf3's reason if it failed."""
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError:
        raise LiveError(f"{name} printed no report: {output[-300:]}") from None
    if "error" in report:
        raise LiveError(f"{name}: {report['error']}")
    return report
