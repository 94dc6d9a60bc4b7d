"""A live network with its hosts: namespaces, switches and controllers from the start to the end of a context.

::

    with running(topology, program, [controller]) as network:
        network.hosts["h1"].run(["ping", "-c", "3", "10.0.2.1"])

The network namespace of a host is ``network.hosts["h1"].name``, such as ``hf0-h1``. While the network runs, any terminal enters it
with ``ip netns exec hf0-h1 bash``. Nothing of it is left when the context ends, or the process does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Unpack

from holdfast import _core
from holdfast.controller import Controller
from holdfast.errors import HoldfastError
from holdfast.live.hosts import check_machine, hosts, preferred
from holdfast.network import LiveNetwork, NetworkOptions
from holdfast.topology import Topology


@contextmanager
def running(
    topology: Topology,
    programs: _core.Program | Mapping[str, _core.Program],
    controllers: Sequence[Controller] = (),
    *,
    tools: Sequence[str] = ("ip",),
    p4runtime: str = "127.0.0.1:0",
    **options: Unpack[NetworkOptions],
) -> Iterator[LiveNetwork]:
    """Run a live network, with network namespaces as its hosts (:attr:`LiveNetwork.hosts`), within the context.

    What ended processes have left behind is removed first. ``tools``: the programs that hosts must have; ``p4runtime``: see
    :class:`LiveNetwork`. Raises :class:`LiveError` if rights or tools are missing.
    """
    check_machine(tools)
    with suppress(HoldfastError):
        _core.clean()
    with hosts(topology) as (namespaces, interfaces):
        network = LiveNetwork(
            topology,
            programs,
            controllers,
            interfaces=interfaces,
            hosts=namespaces,
            p4runtime=p4runtime,
            **options,
        )
        with preferred():
            network.__enter__()
        try:
            yield network
        finally:
            network.__exit__(None, None, None)


__all__ = ["running"]
