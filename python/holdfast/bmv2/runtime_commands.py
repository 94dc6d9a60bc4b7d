"""What ``simple_switch_CLI`` has and P4Runtime has not: numbers of its commands, and nodes of multicast groups. It knows no switch.

:mod:`holdfast.entries_files` reads entries, as for a file of commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.errors import HoldfastError

MATCHES = {"exact": "exact", "lpm": "lpm", "ternary": "ternary", "range": "range", "optional": "ternary"}
"""The kinds of matches of BMv2's interfaces, by P4Runtime's. They have no optional ones: its mask is all ones, or zero."""


class CommandError(HoldfastError):
    """A command that makes no sense for the program; the text says why."""


def number(text: str, what: str, most: int = (1 << 64) - 1) -> int:
    """Parse a number from 0 to ``most``, decimal or hexadecimal with 0x. Raises :class:`CommandError` for any other text."""
    try:
        value = int(text, 16 if text[:2].lower() == "0x" else 10)
    except ValueError:
        value = -1
    if not 0 <= value <= most or "_" in text:
        raise CommandError(f"{what}: {text!r} is not a number from 0 to {most}")
    return value


class MulticastNodes:
    """BMv2's multicast: groups of nodes, each a number (the instance, or rid) with ports. P4Runtime has a group's copies alone.

    ``groups``: the copies (port, instance) that there are already, by group. The nodes of these have the first handles.
    """

    def __init__(self, groups: Mapping[int, Sequence[tuple[int, int]]] | None = None) -> None:
        self._nodes: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._groups: dict[int, list[int]] = {}
        for group, replicas in sorted((groups or {}).items()):
            self._groups[group] = []
            for instance in sorted({instance for _, instance in replicas}):
                ports = tuple(port for port, its in replicas if its == instance)
                self._groups[group].append(self.create(instance, ports))

    def create_group(self, group: int) -> None:
        """Create a multicast group without nodes. Raises :class:`CommandError` if it exists already."""
        if group in self._groups:
            raise CommandError(f"there is a multicast group {group} already")
        self._groups[group] = []

    def destroy_group(self, group: int) -> None:
        """Remove a multicast group; its nodes stay. Raises :class:`CommandError` if there is no such group."""
        del self._groups[self._known(group)]

    def create(self, instance: int, ports: Sequence[int]) -> int:
        """Create a node, one copy to each of ``ports`` with this instance; return its handle, the lowest that is free."""
        handle = next(at for at in range(len(self._nodes) + 1) if at not in self._nodes)
        self._nodes[handle] = (instance, tuple(ports))
        return handle

    def update(self, handle: int, ports: Sequence[int]) -> list[int]:
        """Replace the ports of a node; return the numbers of the groups that contain it."""
        instance, _ = self._node(handle)
        self._nodes[handle] = (instance, tuple(ports))
        return [group for group, nodes in self._groups.items() if handle in nodes]

    def destroy(self, handle: int) -> list[int]:
        """Remove a node, also from its groups; return the numbers of these groups."""
        self._node(handle)
        changed = [group for group, nodes in self._groups.items() if handle in nodes]
        for group in changed:
            self._groups[group].remove(handle)
        del self._nodes[handle]
        return changed

    def associate(self, group: int, handle: int) -> None:
        """Add a node to a multicast group. Raises :class:`CommandError` if it is in a group already, since BMv2 allows only one."""
        self._node(handle)
        if any(handle in nodes for nodes in self._groups.values()):
            raise CommandError(f"node {handle} is in a multicast group already")
        self._groups[self._known(group)].append(handle)

    def dissociate(self, group: int, handle: int) -> None:
        """Remove a node from a multicast group. Raises :class:`CommandError` if it is not in the group."""
        if handle not in self._groups[self._known(group)]:
            raise CommandError(f"node {handle} is not in multicast group {group}")
        self._groups[group].remove(handle)

    def replicas(self, group: int) -> list[tuple[int, int]]:
        """Return the port and the instance of each copy that a multicast group makes."""
        nodes = (self._node(handle) for handle in self._groups[self._known(group)])
        return [(port, instance) for instance, ports in nodes for port in ports]

    def groups(self) -> dict[int, list[int]]:
        """Return the handles of each group's nodes, by the group's number."""
        return {group: list(nodes) for group, nodes in self._groups.items()}

    def nodes(self) -> dict[int, tuple[int, tuple[int, ...]]]:
        """Return the instance and the ports of each node, by its handle."""
        return dict(self._nodes)

    def dump(self) -> str:
        """Return groups and nodes as text, a line for each."""
        lines = [f"group {group}: nodes {', '.join(map(str, nodes)) or '-'}" for group, nodes in self._groups.items()]
        for handle, (instance, ports) in sorted(self._nodes.items()):
            lines.append(f"node {handle}: rid {instance}, ports {', '.join(map(str, ports)) or '-'}")
        return "\n".join(lines)

    def _known(self, group: int) -> int:
        if group not in self._groups:
            raise CommandError(f"there is no multicast group {group}")
        return group

    def _node(self, handle: int) -> tuple[int, tuple[int, ...]]:
        if handle not in self._nodes:
            raise CommandError(f"there is no multicast node {handle}")
        return self._nodes[handle]


__all__ = ["MATCHES", "CommandError", "MulticastNodes", "number"]
