"""One label switching router as its controller sees it: label space, entries by LSP, and who is sent notices.

It knows names of tables, not of recovery mechanisms; :mod:`holdfast.apps.mpls.controller` knows those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.apps.mpls.lsp import Fec
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

MAX_PUSHED = 4
"""Labels that one entry may push or swap."""

ILM = "MplsIngress.ilm"
NHLFES = "MplsIngress.nhlfes"
FTN = "MplsIngress.ftn"
FTN_LPM = "MplsIngress.ftn_lpm"
INTERFACES = "MplsIngress.interfaces"
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

Value = int | bytes
Match = Mapping[str, "int | bytes | str | tuple[int, int]"]


@dataclass(frozen=True)
class Hop:
    """A port, the MAC addresses on its link, and labels of tunnels (with the TTL of the pipe model, or 0) that lead on."""

    port: int
    src_mac: bytes
    dst_mac: bytes
    tunnel: tuple[tuple[int, int], ...] = ()

    def params(self) -> dict[str, Value]:
        """What every action that sends takes."""
        return {"port": self.port, "src_mac": self.src_mac, "dst_mac": self.dst_mac}


@dataclass(frozen=True)
class Nhlfe:
    """A next hop label forwarding entry that is installed."""

    number: int
    port: int


class Lsr:
    """A node's tables. What is installed for an LSP is remembered by its number, and removed with it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._labels: dict[int, set[int]] = defaultdict(set)
        self._nhlfes: dict[int, set[int]] = defaultdict(set)
        self._ilm: dict[int, list[int]] = defaultdict(list)
        self._notices: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._replicas: dict[int, dict[int, int]] = {}
        """By port that may change: by instance, the port that its copy leaves by."""

    def start(self, neighbours: Sequence[Hop], explicit_null_uniform: bool) -> None:
        """What every router has: its interfaces, the reserved labels, and words for the neighbours about their signal."""
        with self.client.batch():
            for hop in neighbours:
                self.client.insert(INTERFACES, {"standard_metadata.ingress_port": hop.port}, "NoAction")
            self.client.insert(
                ILM, {"label": EXPLICIT_NULL}, "MplsIngress.pop", {"lsp": 0, "uniform": int(explicit_null_uniform)}
            )
            self.client.insert(ILM, {"label": ROUTER_ALERT}, "MplsIngress.punt")
            self.client.insert(ILM, {"label": GAL}, "MplsIngress.drop")
        for hop in neighbours:
            instance = self._add_replica(hop.port, hop.port)
            params = {"src_mac": hop.src_mac, "dst_mac": hop.dst_mac}
            self.client.insert(NOTICES, {"instance": instance}, "MplsEgress.send_remote_defect", params)

    # ---- Labels and entries ----

    def allocate_label(self, lsp: int) -> int:
        """The lowest free label of this node's space."""
        used = set().union(*self._labels.values())
        label = _lowest_free(used, FIRST_LABEL)
        if label > LAST_LABEL:
            raise NetworkError("all labels of a node are in use")
        self._labels[lsp].add(label)
        return label

    def add_nhlfe(
        self, lsp: int, hop: Hop, label: int | None, *, labelled: bool, uniform: bool, push_ttl: int
    ) -> Nhlfe:
        """An entry that sends to the hop with this label (None: without, as its end asks for).

        ``labelled``: for packets whose top label gives way to it; else it is pushed, with ``push_ttl``.
        """
        number = _lowest_free(set().union(*self._nhlfes.values()), 1)
        if number >= NHLFE_REMIND:
            raise NetworkError("all NHLFEs of a node are in use")
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
        self.client.insert(NHLFES, {"nhlfe": number}, f"MplsIngress.{action}", params)
        self._nhlfes[lsp].add(number)
        return Nhlfe(number, hop.port)

    def add_ilm(self, lsp: int, label: int, action: str, params: Mapping[str, Value]) -> None:
        """What happens to packets that arrive with a label."""
        self.client.insert(ILM, {"label": label}, f"MplsIngress.{action}", params)
        self._ilm[lsp].append(label)

    def add_fec(self, fec: Fec, params: Mapping[str, Value]) -> None:
        """Binds a class of packets to an LSP."""
        self.client.insert(*self._ftn_key(fec), "MplsIngress.bind", params, priority=self._priority(fec))

    def remove_fec(self, fec: Fec) -> None:
        """Takes that back."""
        self.client.delete(*self._ftn_key(fec), priority=self._priority(fec))

    @staticmethod
    def _ftn_key(fec: Fec) -> tuple[str, Match]:
        if fec.is_prefix and fec.destination is not None:
            return FTN_LPM, {"hdr.ipv4.dst_addr": fec.destination}
        return FTN, fec.match()

    @staticmethod
    def _priority(fec: Fec) -> int | None:
        return None if fec.is_prefix else fec.priority

    def add_route(self, prefix: str, hop: Hop) -> None:
        """A plain IPv4 route."""
        self.client.insert(FTN_LPM, {"hdr.ipv4.dst_addr": prefix}, "MplsIngress.forward", hop.params())

    # ---- Notices ----

    def add_notice(self, lsp: int, changed_port: int, hop: Hop, label: int, number: int) -> None:
        """When a port changes, tells it to whom the label leads; ``number`` is the LSP's hop that this is about."""
        instance = self._add_replica(changed_port, hop.port)
        self.client.insert(
            NOTICES,
            {"instance": instance},
            "MplsEgress.send_notice",
            {"lsp": lsp, "hop": number, "label": label, "src_mac": hop.src_mac, "dst_mac": hop.dst_mac},
        )
        self._notices[lsp].append((changed_port, instance))

    def _add_replica(self, changed_port: int, out_port: int) -> int:
        instance = _lowest_free({i for replicas in self._replicas.values() for i in replicas}, 1)
        if instance > 0xFFFF:
            raise NetworkError("a node has no room for more notices")
        known = self._replicas.get(changed_port, {})
        self._replicas[changed_port] = {**known, instance: out_port}
        self._write_replicas(changed_port, "modify" if known else "insert")
        return instance

    def _write_replicas(self, changed_port: int, verb: Literal["insert", "modify"]) -> None:
        """Copies of events by multicast, copies of packets that make a notice by a clone session: to the same places."""
        replicas = [(port, instance) for instance, port in self._replicas[changed_port].items()]
        with self.client.batch():
            self.client.multicast_group(changed_port + 1, replicas, verb=verb)
            self.client.clone_session(changed_port + 1, replicas, verb=verb)

    # ---- State ----

    def reset(self, lsp: int, wait_to_restore_us: int) -> None:
        """An LSP's registers as they are before anything has happened."""
        with self.client.batch():
            for register in (ON_BACKUP, REPAIRED_AT, FAILED_HOPS, BACKUP_SELECTED):
                self.client.write_register(register, lsp, 0)
            self.client.write_register(WAIT_TO_RESTORE, lsp, wait_to_restore_us)

    def clear_counters(self, lsp: int) -> None:
        """Sets an LSP's counters to zero."""
        with self.client.batch():
            for counter in LSP_COUNTERS:
                self.client.write_counter(counter, lsp)

    def port_is_up(self, port: int) -> bool:
        """What the program knows of a port."""
        return self.client.register(PORT_UP, port) == 1

    def packets(self, counter: str, lsp: int) -> int:
        """Packets in a counter's cell of an LSP."""
        return self.client.counter(counter, lsp)[0]

    def remove(self, lsp: int) -> None:
        """Removes what is installed for an LSP, its classes apart: labels first, so that nothing leads to what is missing."""
        with self.client.batch():
            for label in self._ilm.pop(lsp, []):
                self.client.delete(ILM, {"label": label})
            for number in sorted(self._nhlfes.pop(lsp, ())):
                self.client.delete(NHLFES, {"nhlfe": number})
        for changed_port, instance in self._notices.pop(lsp, []):
            del self._replicas[changed_port][instance]
            self._write_replicas(changed_port, "modify")
            self.client.delete(NOTICES, {"instance": instance})
        self._labels.pop(lsp, None)

    def labels_in_use(self) -> int:
        """How many labels are allocated."""
        return sum(map(len, self._labels.values()))


def _lowest_free(used: set[int], first: int) -> int:
    number = first
    while number in used:
        number += 1
    return number
