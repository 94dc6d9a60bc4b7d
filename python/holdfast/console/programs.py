"""Other programs for the switches of a running network: a changed source, or a mechanism of ``holdfast compare``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast._core import CompileError, Program
from holdfast.errors import ConsoleError
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.terminal import screenful

if TYPE_CHECKING:
    from holdfast.console.session import Result, Session

REACTION_DELAY_MS = 50.0
"""Of a mechanism's controller."""

LARGEST_PACKET_BYTES = 1500
"""That hosts send."""

MOST_PAIRS = 2000
"""Of hosts, that a mechanism is to protect."""


def compiled(path: Path) -> Program:
    """Return the program of a file. Raises :class:`ConsoleError` with the compiler's messages."""
    if not path.is_file():
        raise ConsoleError(f"there is no file {str(path)!r}")
    try:
        return Program.compile(str(path))
    except CompileError as error:
        raise ConsoleError(screenful(str(error))) from None


def _held(client: Client) -> dict[str, int]:
    """Return the number of a switch's entries by table, and of its other objects by kind."""
    found = {
        info.name: sum(not each.is_const for each in client.read_table(info.name)) for info in client.p4info.tables
    }
    found["multicast groups"] = len(client.multicast_groups())
    found["clone sessions"] = len(client.clone_sessions())
    for profile in client.p4info.action_profiles:
        found[f"members of {profile.name}"] = len(client.profile_members(profile.name))
    return found


def reload(session: Session, path: Path, names: Sequence[str]) -> Result:
    """Put a program into switches; what they hold stays where it fits.

    Raises :class:`ConsoleError` if a controller from outside has a switch.
    """
    from holdfast.console.session import Result

    program = compiled(path)
    lost: list[str] = []
    kept = 0
    for name in names:
        client = session.network.client(name)
        with session.clock.held():
            before = _held(client)
            try:
                client.set_pipeline(program, action="reconcile_and_commit")
                reason = ""
            except P4RuntimeError as error:
                if error.code in ("PERMISSION_DENIED", "UNAVAILABLE"):
                    raise ConsoleError(f"{name}: {error.message}; a controller from outside has the switch") from None
                client.set_pipeline(program, action="verify_and_commit")
                reason = f" ({error.message})"
            after = _held(client)
            session.network.programs[name] = program
        kept += sum(min(count, after.get(what, 0)) for what, count in before.items())
        for what, count in before.items():
            if (gone := count - after.get(what, 0)) > 0:
                lost.append(f"{name}: {gone} of {count} lost: {what}{reason}")
    text = f"{program.name} runs in {', '.join(names)}; {kept} entries kept"
    return Result("\n".join([text, *lost]), values={"kept": kept, "lost": len(lost)})


def mechanism(session: Session, name: str) -> Result:
    """Replace programs and controllers by those of a mechanism; traffic and links go on."""
    from holdfast.compare.mechanism import Setting
    from holdfast.compare.mechanisms import MECHANISMS
    from holdfast.compare.traffic_file import Ends
    from holdfast.console.session import Result

    network = session.network
    if network.topology.bridges:
        raise ConsoleError(f"{network.topology.bridges[0]} is a bridge, and mechanisms have P4 switches alone")
    pairs = list(combinations(network.topology.hosts, 2))
    if len(pairs) > MOST_PAIRS:
        raise ConsoleError(f"a mechanism would protect {len(pairs)} pairs of hosts, and at most {MOST_PAIRS} here")
    # A mechanism may add generators to the topology that it is given.
    changed = network.topology.copy()
    setting = Setting(
        topology=changed,
        flows=[Ends(a, (b,)) for a, b in pairs],
        detection_delay_ms=0.0,
        reaction_delay_ms=REACTION_DELAY_MS,
        largest_packet_bytes=LARGEST_PACKET_BYTES,
    )
    built = MECHANISMS[name].build(setting)
    with session.clock.held():
        network.replace_control(built.program, [built.controller])
        known = network.topology.packet_generators
        for generator in changed.packet_generators:
            if generator not in known:
                known.append(generator)
                network.generator_ids.append(network.add_packet_generator(generator))
    lines = [f"{name}: {MECHANISMS[name].what}"]
    if built.unprotected:
        lines.append(f"not protected: {', '.join('-'.join(pair) for pair in built.unprotected)}")
    return Result("\n".join(lines), values={"unprotected": len(built.unprotected)})


__all__ = ["compiled", "mechanism", "reload"]
