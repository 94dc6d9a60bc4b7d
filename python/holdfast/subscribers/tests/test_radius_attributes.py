"""An Access-Accept is done as a whole, or the login is refused: no attribute is ignored but by the word of a standard.

Packets are written by hand; what is done is seen at the user plane, at the subscriber, and in accounting.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest

from holdfast.subscribers import radius_attributes
from holdfast.subscribers.dynamic_authorization import DynamicAuthorization
from holdfast.subscribers.radius_attributes import ATTRIBUTES, UNKNOWN, Use, rule
from holdfast.subscribers.tests.radius_server import (
    SECRET,
    Attributes,
    Online,
    authorization_request,
    decode,
    values,
    vendor,
)

RFC_2865 = [*range(1, 17), *range(18, 21), *range(22, 40), 60, 61, 62, 63]
RFC_2866 = range(40, 52)
RFC_2869 = [52, 53, 55, *range(70, 81), 84, 85, 87, 88]
RFC_2867_2868 = [*range(64, 70), 81, 82, 83, 86, 90, 91]
RFC_3162 = range(95, 101)
RFC_6911 = range(168, 173)


def number(value: int) -> bytes:
    return struct.pack("!I", value)


class Dialled(Online):
    """A gateway with two pools, and a subscriber that dials when it is asked."""

    def __init__(self, accept: Attributes, **radius: object) -> None:
        pools = {"default": "100.64.0.0/16", "gold": "100.65.0.0/16"}
        super().__init__(accept, pools=pools, radius=radius)
        self.plane.trace = []
        self.untaken = self.gateway.pool_use()
        self.host = self.dial(pap=True)

    def heard(self, data: bytes) -> bool:
        """Return True if a frame to the subscriber contained these bytes."""
        assert self.plane.trace is not None
        return any(frame[:6] == self.host.mac and data in frame for _, _, frame in self.plane.trace)

    def online(self) -> bool:
        return self.host.state == "up"

    def after(self, seconds: float) -> bool:
        """Return True if the subscriber is online ``seconds`` later."""
        self.clock.run(seconds)
        return self.online()


Effect = Callable[[Dialled], bool]


def in_accounting(kind: int, *wanted: bytes) -> Effect:
    return lambda online: [values(each, kind) for each in online.requests(4)] == [list(wanted)]


def as_it_always_is(online: Dialled) -> bool:
    """Return True if the session is PPP for one host without routing protocols, as each session is and the attribute demands."""
    session = online.plane.table[online.host.session]
    return session.ipv4 is not None and online.host.ipv4 == session.ipv4.packed


PREFIX, DELEGATED = IPv6Network("2001:db8:77:1::/64"), IPv6Network("2001:db8:9900::/52")
DNS6 = IPv6Address("2001:db8::99")


def prefix_value(network: IPv6Network, octets: int = 16) -> bytes:
    return bytes((0, network.prefixlen)) + network.network_address.packed[:octets]


SERVED: dict[int | tuple[int, int], tuple[Attributes, Effect]] = {
    1: ([(1, b"\xffname")], in_accounting(1, b"\xffname")),
    6: ([(6, number(2))], as_it_always_is),
    7: ([(7, number(1))], as_it_always_is),
    8: (
        [(8, bytes((100, 64, 9, 9)))],
        lambda online: online.plane.table[online.host.session].ipv4 == IPv4Address("100.64.9.9"),
    ),
    9: ([(9, b"\xff" * 4)], as_it_always_is),
    10: ([(10, number(0))], as_it_always_is),
    13: ([(13, number(0)), (13, number(0))], as_it_always_is),
    18: ([(18, b"hello, "), (18, b"you")], lambda online: online.heard(b"hello,  you")),
    25: ([(25, b"\x80one"), (25, b"two")], in_accounting(25, b"\x80one", b"two")),
    27: ([(27, number(100))], lambda online: online.after(90) and not online.after(45)),
    28: ([(28, number(60))], lambda online: online.after(50) and not online.after(45)),
    80: ([], as_it_always_is),
    85: (
        [(85, number(90))],
        lambda online: (
            online.after(200)
            and [values(each, 40) for each in online.requests(4)] == [[number(each)] for each in (1, 3, 3)]
        ),
    ),
    88: (
        [(88, b"gold")],
        lambda online: (online.plane.table[online.host.session].ipv4 or 0) in IPv4Network("100.65.0.0/16"),
    ),
    89: ([(89, b"\xffcui")], in_accounting(89, b"\xffcui")),
    97: (
        [(97, prefix_value(PREFIX, 8))],
        lambda online: (
            online.plane.table[online.host.session].ipv6_prefix == PREFIX
            and online.host.ipv6_prefix == (PREFIX.network_address.packed, 64)
        ),
    ),
    123: (
        [(123, prefix_value(DELEGATED))],
        lambda online: (
            online.plane.table[online.host.session].delegated == DELEGATED
            and online.host.delegated == (DELEGATED.network_address.packed, 52)
        ),
    ),
    169: ([(169, DNS6.packed)], lambda online: online.heard(DNS6.packed)),
    (311, 28): ([vendor(311, 28, bytes((9, 9, 9, 9)))], lambda online: online.host.dns[0] == bytes((9, 9, 9, 9))),
    (311, 29): (
        [vendor(311, 28, bytes((9, 9, 9, 9))), vendor(311, 29, bytes((8, 8, 8, 8)))],
        lambda online: online.host.dns[1] == bytes((8, 8, 8, 8)),
    ),
    (14122, 7): (
        [vendor(14122, 7, number(5_000_000))],
        lambda online: online.plane.table[online.host.session].rates.up_bit_s == 5_000_000,
    ),
    (14122, 8): (
        [vendor(14122, 8, number(6_000_000))],
        lambda online: online.plane.table[online.host.session].rates.down_bit_s == 6_000_000,
    ),
}  # fmt: skip
"""Each attribute that is done, and where that is seen."""

PASSED_OVER: Attributes = [
    (12, number(1400)), (24, b"state"), (29, number(0)), (29, number(1)), (200, b"experimental"), (230, b"x"), (255, b"y"),
    (21, b"unassigned"), vendor(9, 1, b"cisco-avpair"), vendor(4_000_000, 3, b"z"), (26, number(429) + b"\0\0\0\x01\xff\xff"),
    vendor(311, 10, b"\1DOMAIN"),
]  # fmt: skip
"""What RFC 2865 lets a client pass over: sections 5, 5.12, 5.24, 5.26 and 5.29."""

NOT_SERVED: Attributes = [
    *((6, number(each)) for each in (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 17, 0xFFFFFFFF)),
    (6, b""), (6, b"\0\2"), (6, number(2) + b"\0"),
    *((7, number(each)) for each in (0, 2, 3, 4, 5, 6, 99)),
    (8, b"\xff" * 4), (8, bytes(4)), (8, bytes((224, 0, 0, 1))), (8, bytes((127, 0, 0, 1))), (8, b"\1\2\3"), (8, b""),
    (9, bytes((255, 255, 255, 0))), (9, b"\xff"),
    *((10, number(each)) for each in (1, 2, 3)), *((13, number(each)) for each in (1, 2, 3)),
    (27, bytes(4)), (27, b"\0\1"), (28, bytes(4)), (28, bytes(5)), (85, bytes(4)), (85, b"x"), (88, b"silver"), (88, b""), (1, b""),
    (25, b""), (18, b""), (12, b"\1"), (29, number(2)), (89, b""),
    *((97, prefix_value(IPv6Network(each))) for each in ("2001:db8:77::/56", "2001:db8:77::/48", "2001:db8::/32", "::/0")),
    *((97, prefix_value(IPv6Network(each))) for each in ("2001:db8::7/128", "2001:db8:77::/63", "2001:db8:77::/65")),
    *((97, prefix_value(IPv6Network(each))) for each in ("fe80::/64", "ff02::/64", "::/64")),
    (97, b""), (97, b"\0"), (97, b"\0\x40" + bytes(7)), (97, b"\0\x81" + bytes(16)), (97, b"\0\x40" + bytes(17)),
    *((123, prefix_value(IPv6Network(each))) for each in ("2001:db8:77::/65", "2001:db8::7/128", "::/0", "ff00::/56", "::/56")),
    (169, b"\1\2"), vendor(311, 28, b"\1\2\3"), vendor(311, 28, bytes(4)),
    *(vendor(14122, 7, value) for value in (b"", number(1), number(7), bytes(3), bytes(8))), vendor(14122, 8, number(5)),
    *(vendor(14122, kind, b"http://x") for kind in (1, 3, 4, 5, 6, 9, 10, 11, 99)), vendor(3561, 1, b"dsl"),
    vendor(3561, 130, number(1)),
    (26, b""), (26, b"\0\0\x37"), (26, number(14122)), (26, number(311) + b"\x1c"), (26, number(14122) + b"\7\xff\0\0"),
]  # fmt: skip
"""Values of attributes that are known, which cannot be served or are no values."""

REFUSED = [key for key, each in ATTRIBUTES.items() if each.use is Use.REFUSED]


def attribute(key: int | tuple[int, int], value: bytes) -> tuple[int, bytes]:
    return (key, value) if isinstance(key, int) else vendor(*key, value)


def assert_refused(online: Dialled) -> None:
    """Check that the server refused the login, that nobody is online or accounted, and that no pool entry is taken."""
    assert online.host.state == "failed", online.accept
    assert online.host.reason.startswith("login refused"), online.host.reason
    online.clock.run(60)
    assert not online.plane.table
    assert not online.gateway.sessions
    assert not online.requests(4)
    assert online.gateway.pool_use() == online.untaken
    assert online.client.events["dead"] == 0
    assert online.client.events["sent"] == 1


def test_every_attribute_of_the_rfcs_tables_has_its_rule() -> None:
    for kind in (*RFC_2865, *RFC_2866, *RFC_2869, *RFC_2867_2868, *RFC_3162, *RFC_6911):
        if kind != 26:
            assert kind in ATTRIBUTES, kind
    assert all(each.reason for each in ATTRIBUTES.values())
    assert {key for key, each in ATTRIBUTES.items() if each.use is Use.DONE} == set(SERVED)
    passed = {key for key, each in ATTRIBUTES.items() if each.use is Use.PASSED_OVER}
    assert passed == {12, 24, 29, 33}
    assert {key for key in range(256) if rule(key) is UNKNOWN} <= {0, 17, 21, 26, 54, 93, 94, *range(192, 256)}


@pytest.mark.parametrize("key", SERVED, ids=str)
def test_what_is_done_is_seen(key: int | tuple[int, int]) -> None:
    accept, effect = SERVED[key]
    online = Dialled(accept)
    assert online.online(), online.host.reason
    assert effect(online)
    if accept and effect is not as_it_always_is:
        assert not effect(Dialled([]))  # the effect is the attribute's


@pytest.mark.parametrize("key", REFUSED, ids=str)
def test_what_is_not_given_is_a_refused_login(key: int | tuple[int, int]) -> None:
    for value in (b"text", number(0), number(1), b"x" * 60):
        assert_refused(Dialled([attribute(key, value)]))


@pytest.mark.parametrize("accept", NOT_SERVED, ids=repr)
def test_values_that_cannot_be_served_are_a_refused_login(accept: tuple[int, bytes]) -> None:
    assert_refused(Dialled([(6, number(2))] * (accept[0] != 6) + [accept]))


@pytest.mark.parametrize("accept", PASSED_OVER, ids=repr)
def test_what_a_standard_lets_us_pass_over_changes_nothing(
    accept: tuple[int, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    online = Dialled([accept])
    assert online.online()
    assert online.plane.table == Dialled([]).plane.table
    assert online.client.events["passed-over"] == int(accept[0] not in (12, 24, 29))
    assert ["is unknown here" in each.getMessage() for each in caplog.records] == [True] * online.client.events[
        "passed-over"
    ]


@pytest.mark.parametrize("key", [key for key in SERVED if not rule(key).many and key != 80], ids=str)
def test_twice_what_may_come_once_is_a_refused_login(key: int | tuple[int, int]) -> None:
    accept, _ = SERVED[key]
    assert_refused(Dialled([*accept, accept[-1]]))


def test_a_gateway_without_a_protocol_refuses_what_asks_for_it() -> None:
    for accept, changes in (
        ([(8, bytes((10, 0, 0, 1)))], {"address": None, "pools": {}}),
        ([(88, b"gold")], {"address": None, "pools": {}}),
        ([(8, bytes((198, 51, 100, 1)))], {"address": "198.51.100.1"}),
        ([(123, prefix_value(DELEGATED))], {"ipv6": None}),
        ([(169, DNS6.packed)], {"ipv6": None}),
    ):
        online = Online(accept, **changes)
        assert online.dial().state == "failed"
        assert not online.plane.table


# Random Accepts.


def is_served(accept: Attributes) -> bool:
    """Return True if RFC 2865 allows a gateway to serve this Access-Accept, by the lists above alone."""
    once: list[int | tuple[int, int]] = []
    for kind, value in accept:
        key: int | tuple[int, int] = kind
        if kind == 26 and len(value) >= 6 and len(value) == 4 + value[5]:
            key = int.from_bytes(value[:4], "big"), value[4]
        if key not in (13, 18, 25, 33, 169) and (key in SERVED or key in (12, 24, 29)):
            once.append(key)
    if len(once) != len(set(once)):
        return False
    fine = [each for attributes, _ in SERVED.values() for each in attributes] + PASSED_OVER
    return all(each in fine for each in accept)


TIMED = (27, 28, 85)


@pytest.mark.parametrize("seed", range(150))
def test_random_accepts_end_served_or_refused_and_nothing_is_ignored(seed: int) -> None:
    draw = random.Random(seed)
    served = [each for attributes, _ in SERVED.values() for each in attributes]
    accept: Attributes = []
    for _ in range(draw.choice((0, 1, 2, 3, 5, 8))):
        pick = draw.random()
        if pick < 0.75:
            accept.append(draw.choice(served))
        elif pick < 0.85:
            accept.append(draw.choice(PASSED_OVER))
        elif pick < 0.92:
            accept.append(draw.choice(NOT_SERVED))
        else:
            accept.append(attribute(draw.choice(REFUSED), draw.randbytes(draw.randint(0, 40))))
    online = Dialled(accept)
    if not is_served(accept):
        assert_refused(online)
        return
    assert online.online(), (accept, online.host.reason)
    for key, (attributes, effect) in SERVED.items():
        if key in TIMED or not attributes or not all(each in accept for each in attributes):
            continue
        if key in (18, 25):  # in the order of the Accept, which is not the list's
            wanted = [value for kind, value in accept if kind == key]
            assert online.heard(b" ".join(wanted)) if key == 18 else in_accounting(25, *wanted)(online)
        elif key != 88 or not any(kind == 8 for kind, _ in accept):  # an address is more than a pool
            assert effect(online), (key, accept)
    online.host.hang_up()
    online.clock.run(5)
    assert not online.plane.table
    assert [values(each, 40) for each in online.requests(4)] == [[number(1)], [number(2)]]


@pytest.mark.parametrize("seed", range(40))
def test_random_types_and_values_never_stop_the_client(seed: int) -> None:
    """Check that attributes of any type and value are served or refused, and do not affect the next login."""
    draw = random.Random(seed)
    for _ in range(10):
        accept = [(draw.randrange(256), draw.randbytes(draw.choice((0, 1, 4, 6, 18, 60)))) for _ in range(3)]
        accept = [each for each in accept if each[0] not in (33, 80)]
        online = Dialled(accept)
        assert online.host.state in ("up", "failed")
        served = all(kind in SERVED or rule(kind).use is not Use.REFUSED for kind, _ in accept)
        assert served or not online.online()
        online.accept = []
        assert online.dial(2).state == "up"


# CoA requests.


@pytest.mark.parametrize("key", [*ATTRIBUTES, 200, (9, 1), (14122, 4), (3561, 130)], ids=str)
def test_a_coa_does_what_it_says_or_names_its_hindrance(key: int | tuple[int, int]) -> None:
    """Check that a CoA gets Error-Cause 401 for an attribute that it cannot set (RFC 5176, section 3.6)."""
    names = {1, 5, 8, 31, 44, 87, 96, 97, 123}
    sets = {27, 28, 85, (14122, 7), (14122, 8)}
    harmless = {24, 33}
    online = Dialled([], dynamic_authorization={"clients": {"127.0.0.9": SECRET}})
    assert online.configuration.radius is not None
    server = DynamicAuthorization(online.configuration.radius, online.gateway)
    wish = vendor(14122, 8, number(9_000_000))
    attributes = [(44, online.gateway.sessions[online.host.session].accounting_id.encode()), attribute(key, number(77))]
    if key not in sets:
        attributes.append(wish)
    before = online.plane.table[online.host.session]
    answer = server.received(
        IPv4Address("127.0.0.9"), 1, authorization_request(43, 1, attributes, online.wall()), online.wall()
    )
    if key in (55, 80):  # a time long ago, and a signature that is none
        assert answer is None
        return
    assert answer is not None
    cause = [int.from_bytes(value, "big") for value in values(answer, 101)]
    after = online.plane.table[online.host.session]
    if key in sets or key in harmless:
        assert (answer[0], cause) == (44, [])
    elif key == 44:
        assert cause == [404]
    elif key in names:
        assert cause == [503]
    elif key in (4, 32, 95):
        assert cause == [403]
    elif key == 6:
        assert cause == [405]
    else:
        assert cause == [401], radius_attributes.name(key)
    assert (answer[0] == 44) == (after != before or key in {27, 28, 85})
    assert decode(answer)
