"""The words of ``simple_switch_CLI``'s commands as values: entries, keys, parameters, multicast nodes. It knows no switch.

Where BMv2 and P4Runtime differ, the value is P4Runtime's: the lowest number is BMv2's first priority, the highest P4Runtime's; a
field that takes any value is left out; bits outside of a prefix or mask are zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.control.tables import MatchValue, TableEntry
from holdfast.errors import HoldfastError
from holdfast.p4runtime import codec
from holdfast.p4runtime.p4info import Action, MatchField, P4InfoIndex, Table

TOP_PRIORITY = (1 << 31) - 1
"""P4Runtime's priority for BMv2's 0."""


class CommandError(HoldfastError):
    """A command that makes no sense for the program; the text says why."""


def words(line: str) -> list[str]:
    """Return the words of a line without its comment, which begins with ``#``."""
    found = line.split()
    comment = next((at for at, word in enumerate(found) if word.startswith("#")), len(found))
    return found[:comment]


def number(text: str, what: str, most: int = (1 << 64) - 1) -> int:
    """Return a number from 0 to ``most``, decimal or hexadecimal with 0x. Raises :class:`CommandError` for other text."""
    try:
        value = int(text, 16 if text[:2].lower() == "0x" else 10)
    except ValueError:
        value = -1
    if not 0 <= value <= most or "_" in text:
        raise CommandError(f"{what}: {text!r} is not a number from 0 to {most}")
    return value


def table_entry(info: P4InfoIndex, arguments: Sequence[str]) -> TableEntry:
    """Return the entry of ``table_add TABLE ACTION KEY... => PARAMETER... [PRIORITY]``.

    Raises HoldfastError if table, action, values or their number do not fit the program.
    """
    if len(arguments) < 2:
        raise CommandError("table_add TABLE ACTION KEY... => PARAMETER... [PRIORITY]")
    table = info.tables[arguments[0]]
    action = table.actions[arguments[1]]
    rest, priority = list(arguments[2:]), None
    if table.needs_priority:
        if not rest:
            raise CommandError(f"table '{table.name}' needs a priority at the end")
        priority = TOP_PRIORITY - number(rest.pop(), f"priority of an entry of '{table.name}'", TOP_PRIORITY - 1)
    at = rest.index("=>") if "=>" in rest else len(rest)
    return TableEntry(
        table.name, key(table, rest[:at]), action.name, parameters(action, rest[at + 1 :]), priority=priority
    )


def key(table: Table, texts: Sequence[str]) -> dict[str, MatchValue]:
    """Return the match of an entry from the texts of its key fields, in the program's order."""
    fields = list(table.fields)
    if len(texts) != len(fields):
        names = ", ".join(field.name for field in fields)
        raise CommandError(f"table '{table.name}' has {len(fields)} key fields ({names}), and {len(texts)} are given")
    found = ((field.name, _match(table, field, text)) for field, text in zip(fields, texts, strict=True))
    return {name: value for name, value in found if value is not None}


def _match(table: Table, field: MatchField, text: str) -> MatchValue | None:
    """Return the match of one field; None if it takes any value."""
    what = f"field '{field.name}' of table '{table.name}'"
    if field.uri is not None:
        return text
    width = field.width
    if field.kind == "lpm":
        left, slash, right = text.rpartition("/")
        if not slash:
            raise CommandError(f"{what}: {text!r} is no prefix, as in 10.0.0.0/8")
        length = number(right, f"{what}: prefix length", width)
        return (codec.to_int(left, width, what) & codec.prefix_mask(width, length), length) if length else None
    if field.kind == "range":
        low, arrow, high = text.partition("->")
        if not arrow:
            raise CommandError(f"{what}: {text!r} is no range, as in 1->5")
        bounds = codec.to_int(low, width, what), codec.to_int(high, width, what)
        return None if bounds == (0, codec.all_ones(width)) else bounds
    if field.kind in ("ternary", "optional"):
        left, separator, right = text.partition("&&&")
        mask = codec.to_int(right, width, what) if separator else codec.all_ones(width)
        value = codec.to_int(left, width, what) & mask
        if field.kind == "ternary":
            return (value, mask) if mask else None
        if mask not in (0, codec.all_ones(width)):
            raise CommandError(f"{what}: the mask has all bits or none")
        return value if mask else None
    return codec.to_int(text, width, what)


def parameters(action: Action, texts: Sequence[str]) -> dict[str, int | str]:
    """Return an action's parameters by name from their texts, in the program's order."""
    params = list(action.params)
    if len(texts) != len(params):
        names = ", ".join(param.name for param in params) or "none"
        raise CommandError(f"action '{action.name}' has {len(params)} parameters ({names}), and {len(texts)} are given")
    return {
        param.name: text
        if param.uri is not None
        else codec.to_int(text, param.width, f"parameter '{param.name}' of action '{action.name}'")
        for param, text in zip(params, texts, strict=True)
    }


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
        """Create a group without nodes. Raises :class:`CommandError` if it is there."""
        if group in self._groups:
            raise CommandError(f"there is a multicast group {group} already")
        self._groups[group] = []

    def destroy_group(self, group: int) -> None:
        """Remove a group; its nodes stay."""
        del self._groups[self._known(group)]

    def create(self, instance: int, ports: Sequence[int]) -> int:
        """Create a node and return its handle, the lowest that is free."""
        handle = next(at for at in range(len(self._nodes) + 1) if at not in self._nodes)
        self._nodes[handle] = (instance, tuple(ports))
        return handle

    def update(self, handle: int, ports: Sequence[int]) -> list[int]:
        """Give a node other ports, and return the groups that this changes."""
        instance, _ = self._node(handle)
        self._nodes[handle] = (instance, tuple(ports))
        return [group for group, nodes in self._groups.items() if handle in nodes]

    def destroy(self, handle: int) -> list[int]:
        """Remove a node from all its groups, and return them."""
        self._node(handle)
        changed = [group for group, nodes in self._groups.items() if handle in nodes]
        for group in changed:
            self._groups[group].remove(handle)
        del self._nodes[handle]
        return changed

    def associate(self, group: int, handle: int) -> None:
        """Add a node to a group. Raises :class:`CommandError` if it is in one, as a node has one group in BMv2."""
        self._node(handle)
        if any(handle in nodes for nodes in self._groups.values()):
            raise CommandError(f"node {handle} is in a multicast group already")
        self._groups[self._known(group)].append(handle)

    def dissociate(self, group: int, handle: int) -> None:
        """Take a node out of a group."""
        if handle not in self._groups[self._known(group)]:
            raise CommandError(f"node {handle} is not in multicast group {group}")
        self._groups[group].remove(handle)

    def replicas(self, group: int) -> list[tuple[int, int]]:
        """Return a group's copies: port and instance of each."""
        nodes = (self._node(handle) for handle in self._groups[self._known(group)])
        return [(port, instance) for instance, ports in nodes for port in ports]

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


__all__ = ["TOP_PRIORITY", "CommandError", "MulticastNodes", "key", "number", "parameters", "table_entry", "words"]
