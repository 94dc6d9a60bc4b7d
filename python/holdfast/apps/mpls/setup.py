"""One LSP being set up: which entries, notices and registers each of its nodes gets for its mechanism, and in which order.

It does not know how paths are chosen, nor what is done with packets before there is a class of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

from holdfast.apps.mpls.lsp import LastHop, Lsp, Mechanism, TtlModel
from holdfast.apps.mpls.lsr import EXPLICIT_NULL, NHLFE_REMIND, Hop, Lsr, Nhlfe, Value
from holdfast.control.next_hop import to_neighbour
from holdfast.topology import Topology

PIPE_TTL = 255
"""The TTL of labels in the pipe model."""

_PRIMARY, _BACKUP = 1, 2


def hop_towards(topology: Topology, node: str, following: str, tunnels: Mapping[tuple[str, str], Lsp]) -> Hop:
    """Return the hop from ``node`` to ``following``: over their link, or through an LSP of ``tunnels`` with its labels."""
    tunnel = tunnels.get((node, following))
    if tunnel is None:
        link = to_neighbour(topology, node, following)
        return Hop(link.port, link.src_mac, link.dst_mac)
    inner = hop_towards(topology, node, tunnel.path[1], tunnel.tunnels)
    label = tunnel.labels.get(tunnel.path[1])
    ttl = PIPE_TTL if tunnel.ttl == TtlModel.PIPE else 0
    labels = () if label is None else ((label, ttl),)
    return Hop(inner.port, inner.src_mac, inner.dst_mac, (*labels, *inner.tunnel))


def failed_hops(topology: Topology, lsrs: Mapping[str, Lsr], lsp: Lsp) -> int:
    """Return the bit mask of an LSP's hops that have failed, as its ingress has it in a register.

    There is a bit for each hop except the first, whose port the ingress sees itself; the port state is read at the node before the
    hop.
    """
    failed = 0
    for i, (node, following) in enumerate(pairwise(lsp.path)):
        if i > 0 and not lsrs[node].port_is_up(topology.port_towards(node, following)):
            failed |= 1 << i
    return failed


class Setup:
    """The set-up of one LSP, from its egress to its ingress, so that no entry leads to an entry that is still missing."""

    def __init__(self, topology: Topology, lsrs: Mapping[str, Lsr], lsp: Lsp) -> None:
        self.topology = topology
        self.lsrs = lsrs
        self.lsp = lsp
        self.number = lsp.number
        self.uniform = lsp.ttl == TtlModel.UNIFORM
        self.push_ttl = 0 if self.uniform else PIPE_TTL
        self.last = len(lsp.path) - 1
        self.primaries: dict[int, Nhlfe] = {}
        self.backups: dict[int, Nhlfe] = {}

    def run(self) -> dict[str, Value]:
        """Install the LSP at all its nodes; return the action parameters by which an FEC's entry sends packets into it."""
        lsp, recovery = self.lsp, self.lsp.recovery
        self._egress_label()
        for i in range(1, self.last):
            lsp.labels[lsp.path[i]] = self.lsr(i).allocate_label(self.number)
        reverse: dict[int, int] = {}
        if lsp.backup is not None:
            first = self._way(lsp.backup)
            self.backups[0] = self._nhlfe(0, lsp.backup[1], first, labelled=False)
            if recovery.mechanism.loops or recovery.mechanism.notifies:
                reverse = self._reverse(lsp.backup, first)
        # From the last link to the first: a detour merges into what follows its link, which must be there.
        for i in reversed(range(self.last)):
            following = lsp.path[i + 1]
            self.primaries[i] = self._nhlfe(i, following, lsp.labels.get(following), labelled=i > 0)
            if i in lsp.detours:
                way = lsp.detours[i]
                self.backups[i] = self._nhlfe(i, way[1], self._way(way), labelled=i > 0)
            if i > 0:
                self._transit(i)
        if recovery.mechanism.notifies:
            self._notices(reverse)
        if not recovery.merge_capable and lsp.backup is not None:
            self._notices_downstream()
        self._registers()
        return self._switch_params(0)

    def lsr(self, i: int) -> Lsr:
        """Return the router at position ``i`` of the path."""
        return self.lsrs[self.lsp.path[i]]

    def _nhlfe(self, i: int, following: str, label: int | None, *, labelled: bool) -> Nhlfe:
        return self._nhlfe_at(self.lsp.path[i], following, label, labelled=labelled)

    def _nhlfe_at(self, node: str, following: str, label: int | None, *, labelled: bool) -> Nhlfe:
        hop = hop_towards(self.topology, node, following, self.lsp.tunnels)
        return self.lsrs[node].add_nhlfe(
            self.number, hop, label, labelled=labelled, uniform=self.uniform, push_ttl=self.push_ttl
        )

    def _egress_label(self) -> None:
        lsp = self.lsp
        if lsp.last_hop == LastHop.LABEL:
            lsp.labels[lsp.egress] = self.lsr(self.last).allocate_label(self.number)
            self._pop(lsp.labels[lsp.egress], _PRIMARY)
        elif lsp.last_hop == LastHop.EXPLICIT_NULL:
            lsp.labels[lsp.egress] = EXPLICIT_NULL

    def _pop(self, label: int, side: int) -> None:
        """Add the entry that pops ``label`` at the end of the LSP.

        ``side``: whether its packets come by the primary or another path.
        """
        params: dict[str, Value] = {"lsp": self.number, "uniform": int(self.uniform)}
        action = "pop"
        if self._single_input(self.last):
            action = "merge_pop"
            params |= {"input": side, "primary_port": self._port(self.last, self.last - 1)}
        self.lsr(self.last).add_ilm(self.number, label, action, params)

    def _single_input(self, i: int) -> bool:
        """Return True if node ``i`` of the path is a merge point that accepts packets from one input at a time."""
        lsp = self.lsp
        merges = (i - 1 in lsp.detours) if lsp.backup is None else i == self.last
        return merges and not lsp.recovery.merge_capable

    def _port(self, i: int, j: int) -> int:
        return hop_towards(self.topology, self.lsp.path[i], self.lsp.path[j], {}).port

    def _switch_params(self, i: int) -> dict[str, Value]:
        primary, backup = self.primaries[i], self.backups.get(i)
        reminds = i > 0 and self.lsp.recovery.mechanism == Mechanism.PATH
        no_backup = NHLFE_REMIND if reminds else 0
        return {
            "lsp": self.number,
            "nhlfe": primary.number,
            "port": primary.port,
            "backup": no_backup if backup is None else backup.number,
        }

    def _transit(self, i: int, label: int | None = None) -> None:
        """Add the label entry of node ``i``, which is not an end of the path.

        ``label``: the label of packets that come back from a detour; None for those of the primary path.
        """
        params = self._switch_params(i)
        action = "label_switch"
        if self._single_input(i):
            action = "merge_switch"
            side = _PRIMARY if label is None else _BACKUP
            params |= {"input": side, "primary_port": self._port(i, i - 1)}
        self.lsr(i).add_ilm(self.number, self.lsp.labels[self.lsp.path[i]] if label is None else label, action, params)

    def _way(self, way: Sequence[str]) -> int | None:
        """Set up a backup path or a detour, to the node where it meets the primary path.

        Return its first label, None without one.
        """
        meets = self.lsp.path.index(way[-1])
        if meets < self.last:
            label: int | None = self.lsr(meets).allocate_label(self.number)
            assert label is not None
            self._transit(meets, label)
        elif self.lsp.last_hop == LastHop.LABEL:
            label = self.lsr(meets).allocate_label(self.number)
            self._pop(label, _BACKUP)
        else:
            label = self.lsp.labels.get(self.lsp.egress)
        for node, following in reversed(list(pairwise(way[1:]))):
            nhlfe = self._nhlfe_at(node, following, label, labelled=True)
            lsr = self.lsrs[node]
            label = lsr.allocate_label(self.number)
            params = {"lsp": self.number, "nhlfe": nhlfe.number, "port": nhlfe.port, "backup": 0}
            lsr.add_ilm(self.number, label, "label_switch", params)
        return label

    def _reverse(self, backup: Sequence[str], first: int | None) -> dict[int, int]:
        """Set up the LSP back to the ingress, for notices and for packets sent back; return its labels by position on the path.

        ``first``: the label of the backup path at its first hop, None for none.
        """
        mechanism = self.lsp.recovery.mechanism
        labels: dict[int, int] = {}
        if self.last < 2:
            return labels
        onward = self._nhlfe(0, backup[1], first, labelled=True)
        labels[0] = self.lsr(0).allocate_label(self.number)
        self.lsr(0).add_ilm(
            self.number,
            labels[0],
            "reverse_end",
            {
                "lsp": self.number,
                "nhlfe": onward.number,
                "notify": int(mechanism == Mechanism.LOOPBACKVAR),
            },
        )
        for i in range(1, self.last):
            nhlfe = self._nhlfe(i, self.lsp.path[i - 1], labels[i - 1], labelled=True)
            if mechanism.loops:
                self.backups[i] = nhlfe
            if i < self.last - 1:
                labels[i] = self.lsr(i).allocate_label(self.number)
                params = {"lsp": self.number, "nhlfe": nhlfe.number, "port": nhlfe.port, "backup": 0}
                self.lsr(i).add_ilm(self.number, labels[i], "label_switch", params)
        return labels

    def _notices(self, reverse: Mapping[int, int]) -> None:
        """Make each node between ingress and egress notify the ingress when the node's next link goes up or down.

        ``reverse``: the labels of the LSP back to the ingress, by position on the path.
        """
        for i in range(1, self.last):
            hop = hop_towards(self.topology, self.lsp.path[i], self.lsp.path[i - 1], {})
            self.lsr(i).add_notice(self.number, self.primaries[i].port, hop, reverse[i - 1], i)

    def _notices_downstream(self) -> None:
        """Make the node behind a failure notify the merge point further downstream that no more packets will come."""
        for i in range(1, self.last):
            following = self.lsp.path[i + 1]
            hop = hop_towards(self.topology, self.lsp.path[i], following, {})
            self.lsr(i).add_notice(self.number, self._port(i, i - 1), hop, self.lsp.labels[following], i - 1)

    def _registers(self) -> None:
        recovery = self.lsp.recovery
        # The number may have been another LSP's.
        for node in {*self.lsp.path, *(self.lsp.backup or ()), *chain(*self.lsp.detours.values())}:
            self.lsrs[node].clear_counters(self.number)
        for i in range(self.last + 1):
            # If the ingress decides, others follow the link: when packets come again, it has decided that they should.
            follows = i > 0 and recovery.mechanism.notifies
            self.lsr(i).reset(self.number, 0 if follows else recovery.wait_to_restore_us)
        if recovery.mechanism.notifies:
            self.lsr(0).set_failed_hops(self.number, failed_hops(self.topology, self.lsrs, self.lsp))
