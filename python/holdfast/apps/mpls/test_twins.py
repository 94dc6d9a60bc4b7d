"""Random histories of one busy node: interpreter and machine code send the same packets and end in the same state.

The node is everything that a node can be at once: ingress, egress, transit, merge point, point of repair and of loop-back.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from holdfast._core import Program, Switch
from holdfast.apps.mpls import EVENT_PORT, Fec, compile_mpls
from holdfast.apps.mpls.lsr import NHLFE_REMIND, Hop, Lsr
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

PORTS = (1, 2, 3)
EDGE = 4
HISTORIES = 10
STEPS = 400


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_mpls({"LSPS": "16", "REMINDER_US": "200"})


def hop(port: int, *tunnel: tuple[int, int]) -> Hop:
    return Hop(port, bytes((2, 0, 0, 0, 0, port)), bytes((2, 0, 0, 0, 1, port)), tunnel)


def node(program: Program, executor: str) -> tuple[Switch, LocalClient]:
    """Return a switch and its client, with table entries for labels 16 to 33 that cover every kind of label operation."""
    switch = Switch(program, executor=executor)  # type: ignore[arg-type]
    client = LocalClient(Device(1, switch, executor=executor))
    client.set_pipeline(program)
    Writer(client).write(domain_registers(frozenset(PORTS)))
    lsr = Lsr(client)
    lsr.start([hop(port) for port in PORTS], explicit_null_uniform=True)
    lsr.add_route("10.0.4.0/24", hop(EDGE))
    label = 16
    ends: tuple[int | None, ...] = (100, None)
    for lsp in range(1, 5):
        uniform, out = bool(lsp & 1), ends[lsp & 1]
        ttl = 0 if uniform else 255
        switched = lsr.add_nhlfe(lsp, hop(1), out, labelled=True, uniform=uniform, push_ttl=ttl)
        other = lsr.add_nhlfe(lsp, hop(2, (300 + lsp, 0)), 200, labelled=True, uniform=uniform, push_ttl=ttl)
        pushed = lsr.add_nhlfe(lsp, hop(1), 400, labelled=False, uniform=uniform, push_ttl=ttl)
        stacked = lsr.add_nhlfe(
            lsp, hop(3, (500, 9), (501, 0), (502, 0)), 499, labelled=False, uniform=uniform, push_ttl=ttl
        )
        backup = NHLFE_REMIND if lsp == 4 else other.number
        way: dict[str, int | bytes] = {"lsp": lsp, "nhlfe": switched.number, "port": 1, "backup": backup}
        end: dict[str, int | bytes] = {"lsp": lsp, "uniform": int(uniform)}
        merge: dict[str, int | bytes] = {"input": 1 + (lsp & 1), "primary_port": 3}
        lsr.add_ilm(lsp, label, "label_switch", way)
        lsr.add_ilm(lsp, label + 1, "merge_switch", way | merge)
        lsr.add_ilm(lsp, label + 2, "merge_pop", end | merge)
        lsr.add_ilm(lsp, label + 3, "pop", end)
        back: dict[str, int | bytes] = {"lsp": lsp, "nhlfe": other.number, "notify": lsp & 1}
        lsr.add_ilm(lsp, label + 4, "reverse_end", back)
        binding: dict[str, int | bytes] = {"lsp": lsp, "nhlfe": pushed.number, "port": 1, "backup": stacked.number}
        lsr.add_fec(Fec(destination=f"10.0.{lsp + 4}.0/24"), binding)
        lsr.add_fec(Fec(destination="10.0.0.0/8", ingress_port=lsp, diffserv=32), binding)
        lsr.add_notice(lsp, 1, hop(2), 600 + lsp, lsp)
        lsr.add_notice(lsp, 2, hop(1), 700 + lsp, lsp)
        lsr.reset(lsp, (0, 300, 2**48 - 1)[lsp % 3])
        label += 5
    return switch, client


def ipv4(rng: random.Random) -> bytes:
    options = bytes(4 * rng.choice((0, 0, 0, 1, 10)))
    length = 20 + len(options) + 8
    header = bytearray(
        bytes((0x40 | length - 8 >> 2, rng.choice((0, 32, 255))))
        + length.to_bytes(2, "big")
        + bytes((0, 1, 0, 0, rng.choice((0, 1, 2, 64, 255)), 17, 0, 0))
        + bytes((10, 0, 1, 1, 10, 0, rng.randrange(3, 10), 1))
        + options
    )
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, len(header), 2))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (total ^ 0xFFFF).to_bytes(2, "big")
    return bytes(header) + bytes(8)


def labelled(rng: random.Random) -> bytes:
    depth = rng.choice((1, 1, 1, 2, 3, 4, 5, 9))
    notice = rng.random() < 0.3
    entries = []
    for i in range(depth):
        label = rng.choice((0, 1, 3, 13, *range(16, 37)))
        if notice and i == depth - 1 > 0:
            label = 13
        bottom = i == depth - 1
        entries.append(label << 12 | rng.randrange(8) << 9 | bottom << 8 | rng.choice((0, 1, 2, 64, 255)))
    stack = b"".join(entry.to_bytes(4, "big") for entry in entries)
    if notice:
        kind, link, lsp = rng.choice((0, 1, 1, 2, 2, 9)), rng.randrange(40), rng.randrange(8)
        return stack + bytes.fromhex("10007ff8") + bytes((kind, link, 0, lsp))
    return stack + (ipv4(rng) if rng.random() < 0.9 else rng.randbytes(30))


def frame(rng: random.Random) -> tuple[int, bytes]:
    kind = rng.random()
    port = rng.choice((*PORTS, *PORTS, EDGE))
    if kind < 0.15:
        port = rng.choice((EVENT_PORT, port))
        payload = b"\x88\xb5" + rng.randrange(6).to_bytes(2, "big") + bytes((rng.randrange(4), rng.randrange(2)))
    elif kind < 0.65:
        payload = b"\x88\x47" + labelled(rng)
    else:
        payload = b"\x08\x00" + ipv4(rng)
    data = bytearray(bytes(12) + payload)
    if rng.random() < 0.1:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.05:
        del data[rng.randrange(len(data)) :]
    return port, bytes(data)


def state(client: LocalClient) -> dict[str, object]:
    """Return the contents of every register and counter, by name."""
    info = client.p4info
    return {r.name: client.registers(r.name) for r in info.registers} | {
        c.name: client.counters(c.name) for c in info.counters
    }


def test_the_executors_agree(program: Program) -> None:
    seen: Counter[str] = Counter()
    for seed in range(HISTORIES):
        rng = random.Random(seed)
        nodes = [node(program, executor) for executor in ("jit", "interpreter")]
        now_ps = 0
        for _ in range(STEPS):
            now_ps += rng.choice((1_000_000, 50_000_000, 400_000_000))
            if rng.random() < 0.1:
                port, up = rng.choice(PORTS), rng.random() < 0.5
                for switch, _client in nodes:
                    switch.set_port_up(port, up)
            port, data = frame(rng)
            outputs = [switch.process(port, data, now_ps) for switch, _client in nodes]
            assert outputs[0] == outputs[1], f"seed {seed}: port {port}, {data.hex()}"
            seen["sent"] += len(outputs[0])
        states = [state(client) for _switch, client in nodes]
        assert states[0] == states[1], f"seed {seed}"
        for name, cells in states[0].items():
            if isinstance(cells, dict):
                seen[name] += any(value not in (0, (0, 0)) for value in cells.values())
    # The histories are worth something: every register and counter was used, but for what only a mistake would count.
    unused = [name for name in state(nodes[0][1]) if not seen[name]]
    assert unused == ["MplsIngress.no_nhlfe"]
    assert seen["sent"] > HISTORIES * STEPS / 4
