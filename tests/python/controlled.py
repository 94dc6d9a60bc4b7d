"""A primary client of a switch of the native core, for tests of the core's face."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast._core import Switch
from holdfast.p4runtime import Device, LocalClient


def controlled(switch: Switch) -> LocalClient:
    """Return a client of a switch whose program has just been loaded, so that its state is the initial one."""
    device = Device(1, switch)
    device.load(switch.program)
    client = LocalClient(device)
    client.poll()
    return client


def insert(
    client: LocalClient, table: str, key: Sequence[int | bytes], action: str, *args: int | bytes, timeout_ns: int = 0
) -> None:
    """Insert an entry; the match key and the action's arguments are given in the order of the program."""
    fields = [field.name for field in client.p4info.tables[table].fields]
    params = [param.name for param in client.p4info.actions[action].params]
    match = dict(zip(fields, key, strict=True))
    client.insert(table, match, action, dict(zip(params, args, strict=True)), idle_timeout_ns=timeout_ns)
