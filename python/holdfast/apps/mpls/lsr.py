"""One label switching router as its controller sees it: label space, entries by LSP, and who is sent notices.

It knows names of tables, not of recovery mechanisms; :mod:`holdfast.apps.mpls.setup` knows those.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.apps.mpls.lsp import Fec
from holdfast.apps.mpls.owned_numbers import OwnedNumbers
from holdfast.control.desired import Desired, Writer
from holdfast.control.entities import CloneSession, Counter, MulticastGroup, Register
from holdfast.control.tables import TableEntry
from holdfast.control.ternary import prefix_of
from holdfast.errors import NetworkError
from holdfast.p4runtime.client import Client

FIRST_LABEL = 16
"""RFC 3032, section 2.1: 0 to 15 are reserved."""

LAST_LABEL = 2**20 - 1

EXPLICIT_NULL = 0
ROUTER_ALERT = 1
GAL = 13

NHLFE_REMIND = 0xFFFF
"""In the place of a backup: packets that cannot go on remind the ingress of that."""

NO_LSP = 0
"""The number of no LSP: the owner of entries that every node has."""

MAX_PUSHED = 4
"""Labels that one entry may push or swap."""

ILM = "MplsIngress.ilm"
NHLFES = "MplsIngress.nhlfes"
FTN = "MplsIngress.ftn"
FTN_LPM = "MplsIngress.ftn_lpm"
NOTICES = "MplsEgress.notices"

PORT_UP = "MplsIngress.port_state.port_up"
ON_BACKUP = "MplsIngress.protection.on_backup"
REPAIRED_AT = "MplsIngress.protection.repaired_at"
WAIT_TO_RESTORE = "MplsIngress.protection.wait_to_restore"
FAILED_HOPS = "MplsIngress.notices.failed_hops"
BACKUP_SELECTED = "MplsIngress.merge_point.backup_selected"

LSP_TRAFFIC = "MplsIngress.lsp_traffic"
BACKUP_TRAFFIC = "MplsIngress.protection.backup_traffic"
LOOPED = "MplsIngress.looped"
DISCARDED = "MplsIngress.merge_point.discarded"
TTL_EXPIRED = "MplsIngress.ttl_expired"
SWITCHOVERS = "MplsIngress.protection.switchovers"
NOTICES_SENT = "MplsEgress.notices_sent"
NOTICES_RECEIVED = "MplsIngress.notices.notices_received"

LSP_COUNTERS = (
    LSP_TRAFFIC,
    BACKUP_TRAFFIC,
    LOOPED,
    DISCARDED,
    TTL_EXPIRED,
    SWITCHOVERS,
    NOTICES_SENT,
    NOTICES_RECEIVED,
)

Value = int | str


@dataclass(frozen=True)
class Hop:
    """A port, the MAC addresses on its link, and labels of tunnels (with the TTL of the pipe model, or 0) that lead on."""

    port: int
    src_mac: int
    dst_mac: int
    tunnel: tuple[tuple[int, int], ...] = ()

    def params(self) -> dict[str, Value]:
        """Return the parameters that all actions have that send a packet to this hop: output port and MAC addresses."""
        return {"port": self.port, "src_mac": self.src_mac, "dst_mac": self.dst_mac}


@dataclass(frozen=True)
class Nhlfe:
    """A next hop label forwarding entry that is installed."""

    number: int
    port: int


class Lsr:
    """A node's tables. Entries for an LSP are remembered by its number, and removed with it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._writer = Writer(client)
        self._labels = OwnedNumbers(FIRST_LABEL, LAST_LABEL, "all labels of a node are in use")
        self._nhlfes = OwnedNumbers(1, NHLFE_REMIND - 1, "all NHLFEs of a node are in use")
        self._instances = OwnedNumbers(1, 0xFFFF, "a node has no room for more notices")
        self._entries: dict[int, list[TableEntry]] = defaultdict(list)
        """The entries of labels and NHLFEs, by LSP."""
        self._notices: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._replicas: dict[int, dict[int, int]] = {}
        """The copies of notices: by port that may change and by instance, the port that the copy leaves by."""

    def start(self, neighbours: Sequence[Hop], explicit_null_uniform: bool) -> None:
        """Write the entries that every router needs: for reserved labels, and for notices to neighbours that a port is up.

        ``explicit_null_uniform``: packets with label 0 are handled by the uniform TTL model (RFC 3443), else by the pipe model.
        """
        pop = {"lsp": 0, "uniform": int(explicit_null_uniform)}
        self._writer.change(
            [
                TableEntry(ILM, {"label": EXPLICIT_NULL}, "MplsIngress.pop", pop),
                TableEntry(ILM, {"label": ROUTER_ALERT}, "MplsIngress.punt"),
                TableEntry(ILM, {"label": GAL}, "MplsIngress.drop"),
            ]
        )
        for hop in neighbours:
            params = {"src_mac": hop.src_mac, "dst_mac": hop.dst_mac}
            self._add_replica(NO_LSP, hop.port, hop.port, "send_remote_defect", params)

    # ---- Labels and entries ----

    def allocate_label(self, lsp: int) -> int:
        """Allocate and return the lowest free label of this node for an LSP."""
        return self._labels.allocate(lsp)

    def add_nhlfe(
        self, lsp: int, hop: Hop, label: int | None, *, labelled: bool, uniform: bool, push_ttl: int
    ) -> Nhlfe:
        """Add and return an NHLFE that sends packets to ``hop`` with ``label``, or without a label if it is None.

        ``labelled``: the packets' top label is replaced; else ``label`` is pushed on them, with the TTL ``push_ttl``. ``uniform``:
        the TTL model is uniform (RFC 3443). Raise :class:`NetworkError` for more labels than an entry has room for, or if ``label``
        is None though the hop is a tunnel.
        """
        params: dict[str, Value] = hop.params()
        if hop.tunnel:
            if label is None:
                raise NetworkError("an LSP whose last hop is a tunnel needs last_hop='label' or 'explicit_null'")
            stack = [(label, 0 if labelled else push_ttl), *hop.tunnel]
            if len(stack) > MAX_PUSHED:
                raise NetworkError(f"{len(stack)} labels at once; an entry has room for {MAX_PUSHED}")
            params |= {"replace": int(labelled), "count": len(stack)}
            for i in range(MAX_PUSHED):
                params[f"l{i + 1}"], params[f"t{i + 1}"] = stack[i] if i < len(stack) else (0, 0)
            action = "push_stack"
        elif label is None:
            action = "php" if labelled else "forward"
            if labelled:
                params["uniform"] = int(uniform)
        elif labelled:
            action = "swap"
            params["out_label"] = label
        else:
            action = "push"
            params |= {"out_label": label, "ttl": push_ttl}
        number = self._nhlfes.allocate(lsp)
        self._install(lsp, TableEntry(NHLFES, {"nhlfe": number}, f"MplsIngress.{action}", params))
        return Nhlfe(number, hop.port)

    def add_ilm(self, lsp: int, label: int, action: str, params: Mapping[str, Value]) -> None:
        """Add an incoming label map entry: ``MplsIngress`` applies ``action`` to packets of an LSP that arrive with ``label``."""
        self._install(lsp, TableEntry(ILM, {"label": label}, f"MplsIngress.{action}", params))

    def _install(self, lsp: int, entry: TableEntry) -> None:
        self._writer.change([entry])
        self._entries[lsp].append(entry)

    def add_fec(self, fec: Fec, params: Mapping[str, Value]) -> None:
        """Add the entry that sends a class of packets into an LSP; ``params`` identify the LSP."""
        self._writer.change([_fec_entry(fec, params)])

    def remove_fec(self, fec: Fec) -> None:
        """Delete the entry that sends a class of packets into an LSP."""
        self._writer.change(removed=[_fec_entry(fec, {}).key])

    def add_route(self, prefix: str, hop: Hop) -> None:
        """Add a route: plain IPv4 packets to ``prefix`` are sent to ``hop``."""
        self._writer.change([_ftn_lpm(prefix_of(prefix), "forward", hop.params())])

    # ---- Notices ----

    def add_notice(self, lsp: int, changed_port: int, hop: Hop, label: int, number: int) -> None:
        """Make the switch send a notice about hop ``number`` of the LSP when ``changed_port`` goes up or down.

        The notice is sent to ``hop`` with ``label``.
        """
        params = {"lsp": lsp, "hop": number, "label": label, "src_mac": hop.src_mac, "dst_mac": hop.dst_mac}
        instance = self._add_replica(lsp, changed_port, hop.port, "send_notice", params)
        self._notices[lsp].append((changed_port, instance))

    def _add_replica(self, lsp: int, changed_port: int, out_port: int, action: str, params: Mapping[str, Value]) -> int:
        """Send a copy of each notice about ``changed_port`` out of one more port, where ``action`` writes it.

        Return the copy's replication instance.
        """
        instance = self._instances.allocate(lsp)
        self._replicas.setdefault(changed_port, {})[instance] = out_port
        self._writer.change([*self._copies(changed_port), _notice_entry(instance, action, params)])
        return instance

    def _copies(self, changed_port: int) -> Desired:
        """Return the multicast group and the clone session that copy notices about ``changed_port``.

        The multicast group is for events of the port, the clone session for packets from which a notice is made; both have the same
        copies.
        """
        replicas = tuple((port, instance) for instance, port in self._replicas[changed_port].items())
        return MulticastGroup(changed_port + 1, replicas), CloneSession(changed_port + 1, replicas)

    # ---- State ----

    def reset(self, lsp: int, wait_to_restore_us: int) -> None:
        """Reset the registers of an LSP to their initial values, and set its time to wait before it reverts."""
        cleared = (Register(register, lsp, 0) for register in (ON_BACKUP, REPAIRED_AT, FAILED_HOPS, BACKUP_SELECTED))
        self._writer.change(also=[*cleared, Register(WAIT_TO_RESTORE, lsp, wait_to_restore_us)])

    def set_failed_hops(self, lsp: int, hops: int) -> None:
        """Write which hops of an LSP the switch assumes to have failed, as a bit for each hop."""
        self._writer.change(also=[Register(FAILED_HOPS, lsp, hops)])

    def clear_counters(self, lsp: int) -> None:
        """Set all counters of an LSP at this node to zero."""
        self._writer.change(also=[Counter(counter, lsp) for counter in LSP_COUNTERS])

    def port_is_up(self, port: int) -> bool:
        """Return True if ``port`` is up, as the switch's program has recorded."""
        return self.client.register(PORT_UP, port) == 1

    def packets(self, counter: str, lsp: int) -> int:
        """Return the number of packets that ``counter`` has counted for an LSP."""
        return self.client.counter(counter, lsp)[0]

    def remove(self, lsp: int) -> None:
        """Delete all entries of an LSP except those of its FECs; labels go first, so that none leads to a missing entry."""
        gone = sorted(self._entries.pop(lsp, []), key=lambda entry: entry.table != ILM)
        self._writer.change(removed=[entry.key for entry in gone])
        for changed_port, instance in self._notices.pop(lsp, []):
            del self._replicas[changed_port][instance]
            self._writer.change(self._copies(changed_port), [_notice_entry(instance, "", {}).key])
        for numbers in (self._labels, self._nhlfes, self._instances):
            numbers.release(lsp)

    def labels_in_use(self) -> int:
        """Return the number of labels that are allocated at this node."""
        return len(self._labels)


def _fec_entry(fec: Fec, params: Mapping[str, Value]) -> TableEntry:
    """Return the entry by which the ingress sends the packets of a class into an LSP: a prefix, or a ternary match."""
    match = fec.match()
    if fec.is_prefix and fec.destination is not None:
        return _ftn_lpm(prefix_of(fec.destination), "bind", params)
    return TableEntry(FTN, match, "MplsIngress.bind", params, fec.priority)


def _notice_entry(instance: int, action: str, params: Mapping[str, Value]) -> TableEntry:
    """Return the entry by which the egress turns a copy with this replication instance into a notice.

    ``action``: ``send_notice`` or ``send_remote_defect``.
    """
    return TableEntry(NOTICES, {"instance": instance}, f"MplsEgress.{action}", params)


def _ftn_lpm(
    prefix: ipaddress.IPv4Network | ipaddress.IPv6Network, action: str, params: Mapping[str, Value]
) -> TableEntry:
    match = {"hdr.ipv4.dst_addr": (int(prefix.network_address), prefix.prefixlen)}
    return TableEntry(FTN_LPM, match, f"MplsIngress.{action}", params)
