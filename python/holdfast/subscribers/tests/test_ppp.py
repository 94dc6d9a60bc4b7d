"""The option negotiation automaton against RFC 1661's table, transcribed here as it is printed, and packets as bytes."""

from __future__ import annotations

import re

import pytest

from holdfast.subscribers import ppp
from holdfast.subscribers.lcp import Authentication, Lcp
from holdfast.subscribers.tests.worlds import VirtualClock, seeded

FIRST = """
Events| Initial   Starting  Closed    Stopped   Closing   Stopping
 Up   |    2     irc,scr/6     -         -         -         -
 Down |    -         -         0       tls/1       0         1
 Open |  tls/1       1     irc,scr/6     3r        5r        5r
 Close|    0       tlf/0       2         2         4         4
  TO+ |    -         -         -         -       str/4     str/5
  TO- |    -         -         -         -       tlf/2     tlf/3
 RCR+ |    -         -       sta/2 irc,scr,sca/8   4         5
 RCR- |    -         -       sta/2 irc,scr,scn/6   4         5
 RCA  |    -         -       sta/2     sta/3       4         5
 RCN  |    -         -       sta/2     sta/3       4         5
 RTR  |    -         -       sta/2     sta/3     sta/4     sta/5
 RTA  |    -         -         2         3       tlf/2     tlf/3
 RUC  |    -         -       scj/2     scj/3     scj/4     scj/5
 RXJ+ |    -         -         2         3         4         5
 RXJ- |    -         -       tlf/2     tlf/3     tlf/2     tlf/3
 RXR  |    -         -         2         3         4         5
"""
SECOND = """
Events| Req-Sent  Ack-Rcvd  Ack-Sent    Opened
 Up   |    -         -         -           -
 Down |    1         1         1         tld/1
 Open |    6         7         8           9r
 Close|irc,str/4 irc,str/4 irc,str/4 tld,irc,str/4
  TO+ |  scr/6     scr/6     scr/8         -
  TO- | tlf/3p    tlf/3p    tlf/3p         -
 RCR+ |  sca/8   sca,tlu/9   sca/8   tld,scr,sca/8
 RCR- |  scn/6     scn/7     scn/6   tld,scr,scn/6
 RCA  |  irc/7     scr/6x  irc,tlu/9   tld,scr/6x
 RCN  |irc,scr/6   scr/6x  irc,scr/8   tld,scr/6x
 RTR  |  sta/6     sta/6     sta/6   tld,zrc,sta/5
 RTA  |    6         6         8       tld,scr/6
 RUC  |  scj/6     scj/7     scj/8       scj/9
 RXJ+ |    6         6         8           9
 RXJ- |  tlf/3     tlf/3     tlf/3   tld,irc,str/5
 RXR  |    6         7         8         ser/9
"""


def printed() -> dict[tuple[str, int], tuple[list[str], int] | None]:
    cells: dict[tuple[str, int], tuple[list[str], int] | None] = {}
    for table, first in ((FIRST, 0), (SECOND, 6)):
        for row in table.strip().splitlines()[1:]:
            event, rest = row.split("|")
            for column, text in enumerate(rest.split()):
                actions, _, state = text.rpartition("/")
                found = re.match(r"\d", state)
                cells[event.strip(), first + column] = (
                    None if found is None else ([*filter(None, actions.split(","))], int(found[0]))
                )
    return cells


class Probe(ppp.Automaton):
    """Records what happens, as the table's words."""

    protocol = ppp.Protocol.IPCP

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.done: list[str] = []
        self.sent: list[bytes] = []
        super().__init__(self._note, self.clock, ppp.Restart())
        self.verdict: tuple[ppp.Options, ppp.Options] = ((), ())

    def _note(self, protocol: int, packet: bytes) -> None:
        assert protocol == 0x8021
        assert int.from_bytes(packet[2:4], "big") == len(packet)
        self.sent.append(packet)
        self.done.append({1: "scr", 2: "sca", 3: "scn", 4: "scn", 5: "str", 6: "sta", 7: "scj", 10: "ser"}[packet[0]])

    def wishes(self) -> ppp.Options:
        return ((3, bytes((1, 2, 3, 4))),)

    def judge(self, options: ppp.Options) -> tuple[ppp.Options, ppp.Options]:
        return self.verdict

    def layer_up(self) -> None:
        self.done.append("tlu")

    def layer_down(self) -> None:
        self.done.append("tld")

    def layer_finished(self) -> None:
        self.done.append("tlf")

    def other_code(self, code: int, identifier: int, data: bytes) -> bool:
        if code == 9:
            self.handle(ppp.Event.ECHO)
        return code == 9

    def send_echo_reply(self) -> None:
        self.done.append("ser")


@pytest.mark.parametrize("event", list(ppp.Event))
@pytest.mark.parametrize("state", list(ppp.State))
def test_every_cell_of_the_table(event: ppp.Event, state: ppp.State) -> None:
    expected = printed()[event.value, state]
    probe = Probe()
    probe.state = state
    probe._answer = 7, bytes((2, 7, 0, 4)) if event is not ppp.Event.REQUEST_BAD else bytes((3, 7, 0, 4))
    probe._received = bytes((99, 7, 0, 4))
    probe.handle(event)
    if expected is None:
        assert probe.state is state
        assert not probe.done
        return
    actions, after = expected
    assert probe.state == after
    # Counters show in what follows, and This-Layer-Started has no effect here.
    assert probe.done == [each for each in actions if each not in ("irc", "zrc", "tls")]
    timed = after in (4, 5, 6, 7, 8)
    if actions and timed:
        assert probe._cancel is not None
    if not timed:
        assert probe._cancel is None
    if "irc" in actions:
        most = 2 if after in (4, 5) else 10
        sent = sum(each in ("scr", "str") for each in actions)
        assert probe._count == most - sent
    if "zrc" in actions:
        assert probe._count == 0


def opened() -> Probe:
    probe = Probe()
    probe.open()
    probe.up()
    probe.receive(bytes((2, 1, 0, 10, 3, 6, 1, 2, 3, 4)))
    probe.receive(bytes((1, 9, 0, 4)))
    assert probe.opened
    probe.done.clear()
    probe.sent.clear()
    return probe


def test_requests_stop_after_ten_and_terminates_after_two() -> None:
    probe = Probe()
    probe.open()
    probe.up()
    probe.clock.run(29.9)
    assert probe.done == ["scr"] * 10
    probe.clock.run(0.2)
    assert probe.done == ["scr"] * 10 + ["tlf"]
    assert probe.state is ppp.State.STOPPED
    assert len({each[1] for each in probe.sent}) == 10  # each with its own Identifier
    probe = opened()
    probe.close()
    probe.clock.run(20)
    assert probe.done == ["tld", "str", "str", "tlf"]
    assert probe.state is ppp.State.CLOSED


def test_a_terminate_request_of_the_peer_is_acknowledged_and_the_layer_finished() -> None:
    probe = opened()
    probe.receive(bytes((5, 42, 0, 4)))
    assert probe.sent == [bytes((6, 42, 0, 4))]
    probe.clock.run(3.1)
    assert probe.done == ["tld", "sta", "tlf"]


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"\x01\x01\x00",
        bytes((1, 1, 0, 3)),
        bytes((1, 1, 0, 9, 3, 6)),  # longer than it is
        bytes((1, 1, 0, 6, 3, 1)),  # an option shorter than its header
        bytes((1, 1, 0, 6, 3, 9)),  # one longer than the packet
        bytes((1, 1, 0, 5, 3)),
        bytes((2, 77, 0, 10, 3, 6, 1, 2, 3, 4)),  # not our Identifier
        bytes((2, 1, 0, 10, 3, 6, 1, 2, 3, 5)),  # not what we asked for
        bytes((4, 1, 0, 10, 3, 6, 9, 9, 9, 9)),  # rejects what we did not ask for
        bytes((4, 1, 0, 4)),
    ],
)
def test_what_is_invalid_is_silently_discarded(packet: bytes) -> None:
    probe = Probe()
    probe.open()
    probe.up()
    probe.done.clear()
    probe.receive(packet)
    assert probe.state is ppp.State.REQ_SENT
    assert not probe.done


def test_a_request_is_answered_with_its_identifier_and_options() -> None:
    probe = Probe()
    probe.open()
    probe.up()
    probe.sent.clear()
    request = bytes((1, 200, 0, 10, 3, 6, 9, 9, 9, 9))
    probe.receive(request + b"padding")
    assert probe.sent.pop() == bytes((2,)) + request[1:]
    probe.verdict = (), ((3, bytes((1, 1, 1, 1))),)
    probe.receive(request)
    assert probe.sent.pop() == bytes((3, 200, 0, 10, 3, 6, 1, 1, 1, 1))
    probe.verdict = ((3, bytes((9, 9, 9, 9))),), ((3, bytes((1, 1, 1, 1))),)
    probe.receive(request)
    assert probe.sent.pop() == bytes((4, 200, 0, 10, 3, 6, 9, 9, 9, 9))


def test_who_does_not_converge_is_rejected() -> None:
    probe = Probe()
    probe.open()
    probe.up()
    probe.verdict = (), ((3, bytes((1, 1, 1, 1))),)
    probe.sent.clear()
    for number in range(7):
        probe.receive(bytes((1, number, 0, 10, 3, 6, 9, 9, 9, 9)))
    assert [each[0] for each in probe.sent] == [3] * 5 + [4] * 2  # Max-Failure


def test_an_unknown_code_is_rejected_with_the_packet() -> None:
    probe = opened()
    probe.receive(bytes((66, 5, 0, 6, 1, 2)))
    assert probe.sent[0][0] == 7
    assert probe.sent[0][4:] == bytes((66, 5, 0, 6, 1, 2))
    assert probe.opened
    probe.receive(bytes((7, 1, 0, 8, 1, 1, 0, 4)))  # it does not know Configure-Request
    assert "tld" in probe.done


# LCP.


class Owner:
    def __init__(self) -> None:
        self.told: list[str] = []

    def link_up(self) -> None:
        self.told.append("up")

    def link_down(self) -> None:
        self.told.append("down")

    def link_finished(self) -> None:
        self.told.append("finished")

    def protocol_rejected(self, protocol: int) -> None:
        self.told.append(f"{protocol:04x}")

    def echo_replied(self) -> None:
        self.told.append("echo")


class Link:
    def __init__(self, mru: int = 1492) -> None:
        self.sent: list[bytes] = []
        self.owner = Owner()
        self.lcp = Lcp(
            self.owner,
            lambda protocol, packet: self.sent.append(packet),
            VirtualClock(),
            ppp.Restart(),
            mru=mru,
            authentication=(Authentication.CHAP, Authentication.PAP),
            random=seeded(5),
        )
        self.lcp.open()
        self.lcp.up()

    def hear(self, text: str) -> bytes | None:
        self.sent.clear()
        self.lcp.receive(bytes.fromhex(text))
        return self.sent[-1] if self.sent else None

    def open(self) -> None:
        request = self.sent[0]
        self.hear("01 07 00 0e 01 04 05 d4 05 06 de ad be ef")
        self.lcp.receive(b"\2" + request[1:])
        assert self.owner.told == ["up"]


def test_our_request_has_mru_chap_with_md5_and_a_magic_number() -> None:
    link = Link()
    assert link.sent[0][:9] == bytes.fromhex("01 01 00 13 01 04 05 d4 03")
    assert link.sent[0][9:14] == bytes.fromhex("05 c2 23 05 05")
    assert link.sent[0][14] == 6
    assert link.sent[0][15:] == link.lcp.magic.to_bytes(4, "big") != bytes(4)


def test_field_compression_and_their_authentication_are_rejected() -> None:
    link = Link()
    assert link.hear("01 05 00 16 01 04 05 d4 07 02 08 02 03 04 c0 23 05 06 00 00 00 01") == bytes.fromhex(
        "04 05 00 0c 07 02 08 02 03 04 c0 23"
    )


def test_an_mru_beyond_the_carrier_is_lowered() -> None:
    link = Link()
    assert link.hear("01 05 00 08 01 04 05 dc") == bytes.fromhex("03 05 00 08 01 04 05 d4")  # RFC 2516, section 7
    assert link.hear("01 06 00 08 01 04 00 40") == bytes.fromhex("03 06 00 08 01 04 02 40")
    assert Link(1500).hear("01 05 00 08 01 04 05 dc") == bytes.fromhex("02 05 00 08 01 04 05 dc")  # RFC 4638


@pytest.mark.parametrize(("line", "options", "mru"), [
    (1492, "05 06 de ad be ef", 1492),  # RFC 2516, section 7
    (1500, "05 06 de ad be ef", 1500),
    (9000, "05 06 de ad be ef", 1500),  # the default of RFC 1661, section 6.1
    (9000, "01 04 23 28", 9000),
    (9000, "01 04 05 d4", 1492),
])  # fmt: skip
def test_a_peer_takes_what_it_says_or_the_default(line: int, options: str, mru: int) -> None:
    link = Link(line)
    size = 4 + len(bytes.fromhex(options))
    assert link.hear(f"01 05 {size:04x} {options}") == bytes((2, 5)) + bytes.fromhex(f"{size:04x} {options}")
    assert link.lcp.peer_mru == mru


def test_a_peer_whose_mru_is_rejected_in_the_end_takes_what_the_line_takes() -> None:
    link = Link()
    for number in range(5):
        assert (link.hear(f"01 {number:02x} 00 08 01 04 05 dc") or b"")[0] == 3
    assert link.hear("01 09 00 08 01 04 05 dc") == bytes.fromhex("04 09 00 08 01 04 05 dc")
    link.hear("01 0a 00 04")
    assert link.lcp.peer_mru == 1492


def test_a_looped_line_is_noticed() -> None:
    link = Link()
    answer = link.hear(f"01 05 00 0a 05 06 {link.lcp.magic:08x}")
    assert answer is not None
    assert answer[0] == 3
    assert answer[6:] not in (bytes(4), link.lcp.magic.to_bytes(4, "big"))


def test_a_peer_may_choose_pap_and_not_nothing() -> None:
    link = Link()
    answer = link.hear("03 01 00 08 03 04 c0 23")
    assert answer is not None
    assert answer[8:12] == bytes.fromhex("03 04 c0 23")
    link = Link()
    link.hear("04 01 00 09 03 05 c2 23 05")
    link.lcp._clock.run(10)  # type: ignore[attr-defined]
    assert link.owner.told == ["finished"]


def test_echo_is_answered_with_our_number() -> None:
    link = Link()
    assert link.hear("09 20 00 08 de ad be ef") is None  # not before Opened
    link = Link()
    link.open()
    assert (
        link.hear("09 21 00 0a de ad be ef 68 69")
        == bytes((10, 0x21, 0, 10)) + link.lcp.magic.to_bytes(4, "big") + b"hi"
    )
    link.hear("0a 01 00 08 de ad be ef")
    link.hear(f"0a 01 00 08 {link.lcp.magic:08x}")  # a loop
    assert link.owner.told == ["up", "echo"]


@pytest.mark.parametrize("octets", [0, 247, 248, 600, 1400])
def test_an_echo_of_any_length_comes_back_without_padding(octets: int) -> None:
    link = Link()
    link.open()
    length, data = (8 + octets).to_bytes(2, "big"), bytes(range(256)) * 6
    answer = link.hear((b"\x09\x21" + length + b"\xde\xad\xbe\xef" + data[:octets] + b"padding").hex())
    assert answer == b"\x0a\x21" + length + link.lcp.magic.to_bytes(4, "big") + data[:octets]


def test_protocol_reject_both_ways() -> None:
    link = Link()
    link.open()
    link.hear("08 01 00 0a 80 57 01 01 00 04")
    assert link.owner.told == ["up", "8057"]
    link.sent.clear()
    link.lcp.reject_protocol(0x80FD, bytes.fromhex("01 01 00 04"))
    assert link.sent[0][:1] + link.sent[0][2:] == bytes.fromhex("08 00 0a 80 fd 01 01 00 04")
    link.hear("08 02 00 0a c0 21 01 01 00 04")
    assert link.owner.told[-1] == "down"
