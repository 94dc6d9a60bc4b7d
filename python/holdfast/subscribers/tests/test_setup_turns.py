"""Setups that nobody finishes keep no newcomer out, and no newcomer costs its like a setup."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from holdfast.subscribers.plane import Line
from holdfast.subscribers.pppoe import BROADCAST, DISCOVERY, Code, Tag
from holdfast.subscribers.setup_turns import SetupTurns
from holdfast.subscribers.tests.test_gateway import World


def test_turns_against_a_plain_model() -> None:
    """Check that after each step the choice is the youngest session of the fullest line of the fullest access node."""
    draw = random.Random(7)
    turns, there, number = SetupTurns(), dict[int, Line](), 0
    seen = Counter[bool]()
    for _ in range(20_000):
        line = Line(1, draw.randrange(3), draw.randrange(4))
        if draw.random() < 0.52 and len(there) < 40:
            number += 1
            turns.add(number, line)
            there[number] = line
        elif there:
            gone = draw.choice([*there, 0])
            turns.discard(gone)
            there.pop(gone, None)
        lines = Counter(there.values())
        nodes = Counter(each.s_tag for each in there.values())
        found = turns.in_favour_of(line)
        seen[found is None] += 1
        if found is None:
            assert max(nodes.values(), default=0) < nodes[line.s_tag] + 2
            assert all(count < lines[line] + 2 for each, count in lines.items() if each.s_tag == line.s_tag)
        else:
            of = there[found]
            assert found == max(each for each in there if there[each] == of)
            assert lines[of] == max(count for each, count in lines.items() if each.s_tag == of.s_tag)
            assert (nodes[of.s_tag] == max(nodes.values()) >= nodes[line.s_tag] + 2) or of.s_tag == line.s_tag
        assert len(turns) == len(there)
    assert min(seen.values()) > 1000
    for each in list(there):
        turns.discard(each)
    assert turns.in_favour_of(Line(1)) is None and not vars(turns)["_of_node"] and not vars(turns)["_sessions"]


ATTACKS = {
    "lines with eight each": [Line(1, 1000 + n // 8) for n in range(400)],
    "inner tags of one line": [Line(1, 7, 1 + n) for n in range(400)],
}


@pytest.mark.parametrize("lines", ATTACKS.values(), ids=list(ATTACKS))
def test_setups_that_nobody_finishes_keep_no_newcomer_out(lines: list[Line]) -> None:
    world = World(limits={"setups": 100, "padi_per_line_s": 1000})
    gateway = world.gateway
    before = world.subscriber(1, Line(1, 5))
    before.dial()
    world.clock.run(3.0)
    for number, line in enumerate(lines):
        ask(world, line, number)
        assert gateway.setups <= 100 and gateway.violations() == []
    assert gateway.setups == 100
    # Nodes and lines that have none are in at once, while the crowd goes on.
    newcomers = [Line(1, 6), Line(2), Line(1, 8, 9), Line(1, 2000)]
    for number, line in enumerate(newcomers):
        host = world.subscriber(10 + number, line)
        host.dial()
        for again in range(50):
            ask(world, lines[again], 1000 + again + 50 * number)
            world.clock.run(0.01)
        world.clock.run(1.0)
        assert gateway.violations() == []
        assert host.state == "up", (line, host.reason)
    assert gateway.events["displaced"] >= 4
    assert before.state == "up"


def test_a_crowd_of_equals_displaces_nobody() -> None:
    """Check that setups that are under way finish when all subscribers dial at once, as after an outage."""
    world = World(limits={"setups": 50})
    for number in range(200):
        ask(world, Line(1, 1 + number), number)
    assert world.gateway.setups == 50
    assert world.gateway.events["displaced"] == 0
    assert world.gateway.refusals["setups"] == 150


def ask(world: World, line: Line, number: int) -> None:
    """Send a PADI and, upon a PADO, a PADR, but nothing after that, so that the setup stays unfinished."""
    mac = b"\x06\x01" + number.to_bytes(4)
    hear: list[bytes] = []
    world.plane.hosts[line, mac] = hear.append
    world.plane.from_line(line, discovery(BROADCAST, mac, Code.PADI, (Tag.SERVICE_NAME, b"")))
    world.clock.run(0.002)
    offers = [frame for frame in hear if frame[12:14] == b"\x88\x63" and frame[15] == Code.PADO]
    if offers:
        cookie = tags(offers[-1])[Tag.AC_COOKIE]
        asked = discovery(offers[-1][6:12], mac, Code.PADR, (Tag.SERVICE_NAME, b""), (Tag.AC_COOKIE, cookie))
        world.plane.from_line(line, asked)
        world.clock.run(0.002)


def discovery(destination: bytes, source: bytes, code: Code, *of: tuple[Tag, bytes]) -> bytes:
    """Return a PPPoE discovery frame with tags, given as (type, value)."""
    inside = b"".join(tag.to_bytes(2) + len(value).to_bytes(2) + value for tag, value in of)
    return destination + source + DISCOVERY + bytes((0x11, code, 0, 0)) + len(inside).to_bytes(2) + inside


def tags(frame: bytes) -> dict[int, bytes]:
    """Return the tags of a PPPoE discovery frame: value by type."""
    found, at = {}, 20
    while at < 20 + int.from_bytes(frame[18:20]):
        length = int.from_bytes(frame[at + 2 : at + 4])
        found[int.from_bytes(frame[at : at + 2])] = frame[at + 4 : at + 4 + length]
        at += 4 + length
    return found
