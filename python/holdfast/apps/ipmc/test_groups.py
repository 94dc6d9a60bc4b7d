"""One switch with ``ipmc.p4``, byte by byte: the copies at each port, and the drops."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from holdfast._core import Program, Switch
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

UP, LEFT, RIGHT = 1, 2, 3
GROUP, GROUP_V6 = "239.1.2.3", "ff15::1:2:3"
SOURCE, SOURCE_V6 = "10.0.0.1", "2001:db8::1"
MACS = {port: f"02:00:00:00:00:0{port}" for port in (UP, LEFT, RIGHT)}


class Router:
    """(S,G) comes in by ``UP`` and leaves by ``LEFT`` and ``RIGHT``; (*,G) comes from anywhere and goes to all three."""

    def __init__(self, program: Program, executor: str) -> None:
        self.switch = Switch(program, executor=executor)  # type: ignore[arg-type]
        self.client = LocalClient(Device(1, self.switch, executor=executor))  # type: ignore[arg-type]
        self.client.set_pipeline(program)
        self.client.multicast_group(1, [(LEFT, 1), (RIGHT, 1)])
        self.client.multicast_group(2, [(UP, 1), (LEFT, 1), (RIGHT, 1)])
        for port, mac in MACS.items():
            self.client.insert("interfaces", {"egress_port": port}, "replicas.send", {"src_mac": mac})
        for version, source, group, shared in ((4, SOURCE, GROUP, "239.9.9.9"), (6, SOURCE_V6, GROUP_V6, "ff15::9")):
            field = f"hdr.ipv{version}"
            one, every = {"m_grp": 1, "rpf_port": UP}, {"m_grp": 2, "rpf_port": 511}
            self.client.insert(
                f"ipv{version}_sources", {f"{field}.src_addr": source, f"{field}.dst_addr": group}, "replicate", one
            )
            self.client.insert(f"ipv{version}_groups", {f"{field}.dst_addr": shared}, "replicate", every)

    def send(self, packet: Packet, port: int = UP) -> dict[int, Packet]:
        data = bytes(Ether(src="02:aa:00:00:00:01", dst="01:00:5e:01:02:03") / packet)
        out = self.switch.process(port, data, 0)
        assert len({to for to, _ in out}) == len(out)
        return {to: Ether(sent) for to, sent in out}

    def counted(self, name: str) -> int:
        return self.client.counter(f"RouterIngress.{name}", 0)[0]


@pytest.fixture(params=["jit", "interpreter"])
def router(program: Program, request: pytest.FixtureRequest) -> Router:
    return Router(program, request.param)


def v4(group: str = GROUP, **fields: object) -> Packet:
    return IP(**{"src": SOURCE, "dst": group, "ttl": 9, **fields}) / UDP(sport=1, dport=2) / Raw(b"payload")


def v6(group: str = GROUP_V6, **fields: object) -> Packet:
    return IPv6(**{"src": SOURCE_V6, "dst": group, "hlim": 9, **fields}) / UDP(sport=1, dport=2) / Raw(b"payload")


def test_a_copy_leaves_by_each_port_with_its_address_and_one_hop_less(router: Router) -> None:
    for packet in (v4(), v6()):
        out = router.send(packet)
        assert out.keys() == {LEFT, RIGHT}
        for port, sent in out.items():
            assert (sent.src, sent.dst) == (MACS[port], "01:00:5e:01:02:03")
            inner = sent.payload
            assert bytes(inner.payload) == bytes(type(packet)(bytes(packet)).payload)
            if inner.version == 4:
                assert inner.ttl == 8
                given = inner.chksum
                del inner.chksum
                assert type(inner)(bytes(inner)).chksum == given
            else:
                assert inner.hlim == 8


def test_what_comes_in_by_another_port_than_the_roots_is_dropped(router: Router) -> None:
    assert router.send(v4(), LEFT) == router.send(v6(), RIGHT) == {}
    assert router.counted("groups.wrong_port") == 2


def test_a_shared_tree_takes_every_sender_and_never_sends_back(router: Router) -> None:
    for port in (UP, LEFT, RIGHT):
        assert router.send(v4("239.9.9.9", src="10.7.7.7"), port).keys() == MACS.keys() - {port}
        assert router.send(v6("ff15::9", src="2001:db8::7"), port).keys() == MACS.keys() - {port}


@pytest.mark.parametrize(
    ("packet", "counter"),
    [
        (v4(src="10.0.0.2"), "groups.no_group"),
        (v6(src="2001:db8::2"), "groups.no_group"),
        (v4("224.0.0.5"), "groups.not_routable"),
        (v4("239.9.9.9", src="224.1.2.3"), "groups.not_routable"),
        (v4("239.9.9.9", src="0.0.0.0"), "groups.not_routable"),
        (v6("ff02::1"), "groups.not_routable"),
        (v6("ff01::1"), "groups.not_routable"),
        (v6("ff15::9", src="fe80::1"), "groups.not_routable"),
        (v6("ff15::9", src="::"), "groups.not_routable"),
        (v4(ttl=1), "ttl_expired"),
        (v6(hlim=1), "ttl_expired"),
        (v4(chksum=1), "malformed"),
    ],
)
def test_what_is_not_forwarded_is_counted(router: Router, packet: Packet, counter: str) -> None:
    assert router.send(packet) == {}
    assert router.counted(counter) == 1
