"""A user plane of one switch: control packets and sessions in one program (`UserPlane` of the subscribers' control plane).

It works with any P4Runtime client. With a client whose events nobody else takes (live), call :meth:`SinglePlane.listen`; in a
simulation, the network's controller hands packet-ins over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

from holdfast.apps.bng import program
from holdfast.apps.bng.edges import CorePort, Edges, mac_bytes
from holdfast.apps.bng.entries import Way
from holdfast.apps.bng.frames import arp_reply, neighbour_advertisement, tagged, untagged
from holdfast.apps.bng.sessions import SessionTables
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import Client
from holdfast.subscribers.plane import Line, Session, Usage

Handler = Callable[[Line, bytes], None]


def refuse(line: Line, frame: bytes) -> None:
    """Ignore a frame from an access line. This handler is used until a control plane sets its own."""


def drops(client: Client, counter: str = program.DROPS, reasons: tuple[str, ...] = program.REASONS) -> dict[str, int]:
    """Return how many packets a switch has dropped, by reason; reasons without drops are left out."""
    cells = client.counters(counter)
    return {reason: cells[number][0] for number, reason in enumerate(reasons) if number and cells[number][0]}


def answer_neighbour(
    client: Client, core: CorePort, port: int, frame: bytes, has: Callable[[IPv4Address | IPv6Address], bool]
) -> None:
    """Answer an ARP request or a neighbour solicitation for an address of the gateway or of a session.

    ``has``: returns True for an address of a session. Other frames are ignored.
    """
    mac = mac_bytes(core.mac)

    def owns(address: IPv4Address | IPv6Address) -> bool:
        return address in core.addresses or has(address)

    reply = arp_reply(frame, mac, owns) or neighbour_advertisement(frame, mac, owns)
    if reply is not None:
        client.packet_out(reply, egress_port=port)


class SinglePlane:
    """The `UserPlane` of a switch with the variant ``single``. Sessions that are in the switch stay there."""

    def __init__(self, client: Client, edges: Edges) -> None:
        self._client = client
        self._edges = edges
        self._handler: Handler = refuse
        self.sessions = SessionTables(client, Way(edges))

    def listen(self) -> None:
        """Process the packet-ins that the switch sends from now on, in the thread that receives for the client."""
        self._client.on_packet_in = lambda packet: self.packet_in(packet.payload, packet.metadata)

    def packet_in(self, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Process a packet from the switch.

        Hand it to the control plane if it came from an access line, else answer ARP or neighbour discovery. Other packets from the
        core are ignored.
        """
        port = metadata["ingress_port"]
        if self._edges.access_port(port) is not None:
            self._handler(*untagged(packet, port))
        else:
            answer_neighbour(self._client, self._edges.core_port(port), port, packet, self.sessions.owns)

    @property
    def addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        """The gateway's own addresses towards the core: no subscriber may have one."""
        return self._edges.addresses

    # UserPlane

    def install(self, sessions: Iterable[Session]) -> None:
        """Add or replace sessions, in atomic batches of 50.

        Raise :class:`NetworkError` for one that cannot be forwarded, or whose address another one has.
        """
        self.sessions.install(sessions)

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions and return their last usage by identifier."""
        return self.sessions.remove(session_ids)

    def usage(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Return the usage of sessions since they were installed, by identifier."""
        return self.sessions.usage(session_ids)

    def installed(self) -> dict[int, Session]:
        """Return the sessions that are in the switch, by session identifier."""
        return self.sessions.read()

    def send(self, line: Line, frame: bytes) -> None:
        """Send a frame to an access line, with its tags. Raise :class:`NetworkError` if the line's port is no access port."""
        port = self._edges.access_port(line.port)
        if port is None:
            raise NetworkError(f"{line}: port {line.port} is no access port")
        self._client.packet_out(tagged(line, frame, port.s_tpid, port_tag=False), egress_port=line.port)

    def receive(self, handler: Handler) -> None:
        """Set ``handler``, which is called with the access line and the frame for each frame for the control plane."""
        self._handler = handler

    # For operators.

    def drops(self) -> dict[str, int]:
        """Return how many packets the switch has dropped, by reason."""
        return drops(self._client)

    def echoes(self) -> int:
        """Return the number of LCP Echo-Requests that the data plane has answered."""
        return self._client.counter(program.ECHOES, 0)[0]
