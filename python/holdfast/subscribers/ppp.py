"""PPP's option negotiation (RFC 1661): the automaton that LCP and every network control protocol share.

Sans I/O: packets come in through :meth:`Automaton.receive` and leave through a function; time is a :class:`Clock`'s.

A negotiation ends, whatever the peer answers. The table lets a peer that answers for ever have requests for ever (section 2 asks
for loop detection), so the automaton counts besides: see :class:`Restart`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import ClassVar

from holdfast.subscribers.plane import Clock


class Protocol(IntEnum):
    """PPP's Protocol field."""

    IPV4 = 0x0021
    IPV6 = 0x0057
    IPCP = 0x8021
    IPV6CP = 0x8057
    LCP = 0xC021
    PAP = 0xC023
    CHAP = 0xC223


class Code(IntEnum):
    """The Code field of LCP and, up to Code-Reject, of every control protocol (section 5)."""

    CONFIGURE_REQUEST = 1
    CONFIGURE_ACK = 2
    CONFIGURE_NAK = 3
    CONFIGURE_REJECT = 4
    TERMINATE_REQUEST = 5
    TERMINATE_ACK = 6
    CODE_REJECT = 7
    PROTOCOL_REJECT = 8
    ECHO_REQUEST = 9
    ECHO_REPLY = 10
    DISCARD_REQUEST = 11


class State(IntEnum):
    """Section 4.2."""

    INITIAL = 0
    STARTING = 1
    CLOSED = 2
    STOPPED = 3
    CLOSING = 4
    STOPPING = 5
    REQ_SENT = 6
    ACK_RCVD = 7
    ACK_SENT = 8
    OPENED = 9


class Event(Enum):
    """Section 4.3; the value is the table's name."""

    UP = "Up"
    DOWN = "Down"
    OPEN = "Open"
    CLOSE = "Close"
    TIMEOUT_MORE = "TO+"
    TIMEOUT_LAST = "TO-"
    REQUEST_GOOD = "RCR+"
    REQUEST_BAD = "RCR-"
    ACK = "RCA"
    NAK = "RCN"
    TERMINATE = "RTR"
    TERMINATE_ACK = "RTA"
    UNKNOWN = "RUC"
    REJECT_BENIGN = "RXJ+"
    REJECT_FATAL = "RXJ-"
    ECHO = "RXR"


# Section 4.1. A cell is actions and the next state. The options r (restart) and p (passive) are not used; x is logged by nobody.
_TABLE = """
Up    2      irc,scr/6  -          -                -      -      -          -          -          -
Down  -      -          0          tls/1            0      1      1          1          1          tld/1
Open  tls/1  1          irc,scr/6  3                5      5      6          7          8          9
Close 0      tlf/0      2          2                4      4      irc,str/4  irc,str/4  irc,str/4  tld,irc,str/4
TO+   -      -          -          -                str/4  str/5  scr/6      scr/6      scr/8      -
TO-   -      -          -          -                tlf/2  tlf/3  tlf/3      tlf/3      tlf/3      -
RCR+  -      -          sta/2      irc,scr,sca/8    4      5      sca/8      sca,tlu/9  sca/8      tld,scr,sca/8
RCR-  -      -          sta/2      irc,scr,scn/6    4      5      scn/6      scn/7      scn/6      tld,scr,scn/6
RCA   -      -          sta/2      sta/3            4      5      irc/7      scr/6      irc,tlu/9  tld,scr/6
RCN   -      -          sta/2      sta/3            4      5      irc,scr/6  scr/6      irc,scr/8  tld,scr/6
RTR   -      -          sta/2      sta/3            sta/4  sta/5  sta/6      sta/6      sta/6      tld,zrc,sta/5
RTA   -      -          2          3                tlf/2  tlf/3  6          6          8          tld,scr/6
RUC   -      -          scj/2      scj/3            scj/4  scj/5  scj/6      scj/7      scj/8      scj/9
RXJ+  -      -          2          3                4      5      6          6          8          9
RXJ-  -      -          tlf/2      tlf/3            tlf/2  tlf/3  tlf/3      tlf/3      tlf/3      tld,irc,str/5
RXR   -      -          2          3                4      5      6          7          8          ser/9
"""


def _cells() -> dict[Event, tuple[tuple[tuple[str, ...], State] | None, ...]]:
    table = {}
    for row in _TABLE.split("\n"):
        if row:
            name, *cells = row.split()
            table[Event(name)] = tuple(_cell(each) for each in cells)
    return table


def _cell(text: str) -> tuple[tuple[str, ...], State] | None:
    if text == "-":
        return None
    actions, _, state = text.rpartition("/")
    return tuple(actions.split(",")) if actions else (), State(int(state))


TRANSITIONS = _cells()
"""Actions and next state of each event in each state; None where section 4.1 has no transition."""

_TIMED = {State.CLOSING, State.STOPPING, State.REQ_SENT, State.ACK_RCVD, State.ACK_SENT}


@dataclass(frozen=True)
class Restart:
    """Section 4.6: the Restart timer in seconds, and how often what is sent.

    ``max_configure`` is also the number of Configure-Requests of one negotiation, with and without answers, and of Configure-Naks
    and -Rejects without a Configure-Ack between them: after these, the protocol is closed. A protocol that was quiet for
    :attr:`negotiation_s`, or got no answer for as long, begins a new negotiation. After ``max_failure`` Naks of one of our options
    we do without it.
    """

    restart_s: float = 3.0
    max_configure: int = 10
    max_terminate: int = 2
    max_failure: int = 5

    @property
    def negotiation_s(self) -> float:
        """The time in seconds after which a negotiation with a silent peer is given up."""
        return self.restart_s * self.max_configure


Options = tuple[tuple[int, bytes], ...]
"""Configuration options, each as (type, data)."""


def read_options(data: bytes) -> Options | None:
    """Parse the configuration options of a packet (RFC 1661, section 6). Returns None if a length is wrong."""
    options, at = [], 0
    while at < len(data):
        if at + 2 > len(data) or data[at + 1] < 2 or at + data[at + 1] > len(data):
            return None
        options.append((data[at], data[at + 2 : at + data[at + 1]]))
        at += data[at + 1]
    return tuple(options)


def write_options(options: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the bytes of configuration options, which :func:`read_options` parses."""
    return b"".join(bytes((kind, 2 + len(data))) + data for kind, data in options)


def packet(code: int, identifier: int, data: bytes = b"") -> bytes:
    """Return a control protocol's packet: code, identifier, length and data (RFC 1661, section 5)."""
    return bytes((code, identifier)) + (4 + len(data)).to_bytes(2, "big") + data


def _repeated(options: Options) -> Options:
    """Return the options that repeat the type of an earlier option, which these protocols do not allow (RFC 1661, section 6)."""
    first = {kind: at for at, (kind, _) in reversed(list(enumerate(options)))}
    return tuple(each for at, each in enumerate(options) if first[each[0]] != at)


class Automaton:
    """Negotiates one protocol. Subclasses say what to ask for and what to accept, and are told when the layer goes up or down.

    ``send`` takes a protocol number and a packet. ``indispensable``: options of ours that the protocol cannot do without.
    """

    protocol: ClassVar[Protocol]
    indispensable: ClassVar[frozenset[int]] = frozenset()

    def __init__(self, send: Callable[[int, bytes], None], clock: Clock, restart: Restart) -> None:
        self.state = State.INITIAL
        self._send, self._clock, self._restart = send, clock, restart
        self._cancel: Callable[[], None] | None = None
        self._count = 0
        self._identifier = 0
        self._requested = b""
        self._request_identifier = -1
        self._asked = 0
        self._asked_s = float("-inf")
        self._refusals = self._naks = 0
        self._naked: Counter[int] = Counter()
        self._unwanted: set[int] = set()
        self._answer: tuple[int, bytes] = (0, b"")
        self.acknowledged = False
        """True if an option list of the peer was ever acknowledged."""
        self._received = b""

    # Methods that subclasses define.

    def wishes(self) -> Options:
        """Return the options to send in our Configure-Request, none by default.

        Options that the peer rejected are removed later.
        """
        return ()

    def judge(self, options: Options) -> tuple[Options, Options]:
        """Return the options of the peer's Configure-Request to reject, and the options to change, with acceptable values.

        By default, all options are rejected.
        """
        return options, ()

    def accepted(self, options: Options) -> None:
        """Store the peer's options, which are acknowledged; by default do nothing."""

    def acknowledging(self) -> None:
        """Prepare for the Configure-Ack, which is sent when this method returns; by default do nothing.

        The peer may use the options that it asked for as soon as the Configure-Ack arrives.
        """

    def naked(self, options: Options) -> None:
        """Handle a Configure-Nak, whose options have the values that the peer proposes; by default do nothing."""

    def rejected(self, options: Options) -> None:
        """Handle a Configure-Reject: the peer does not know these options, and they are not sent again."""

    def layer_up(self) -> None:
        """Handle the transition to state Opened (action This-Layer-Up)."""

    def layer_down(self) -> None:
        """Handle the transition from state Opened (action This-Layer-Down)."""

    def layer_finished(self) -> None:
        """Handle the end of the protocol, terminated or failed (action This-Layer-Finished)."""

    def other_code(self, code: int, identifier: int, data: bytes) -> bool:
        """Handle a packet with a code above 7; return False if the protocol has no such code."""
        return False

    # Methods for owners.

    @property
    def opened(self) -> bool:
        """True if the state is Opened: both sides agree."""
        return self.state is State.OPENED

    def up(self) -> None:
        """Handle the event that the layer below is up."""
        self.handle(Event.UP)

    def down(self) -> None:
        """Handle the event that the layer below is down."""
        self.handle(Event.DOWN)

    def open(self) -> None:
        """Start the negotiation, now or as soon as the layer below is up (event Open of RFC 1661, section 4.3).

        This has no effect in the state Stopped. In the state Closing, the state becomes Stopping, and nothing is sent.
        """
        self.handle(Event.OPEN)

    def close(self) -> None:
        """Terminate the protocol (event Close of RFC 1661, section 4.3).

        The peer is told if the protocol is open or being negotiated.
        """
        self.handle(Event.CLOSE)

    def restore(self) -> None:
        """Set the state to Opened, as an earlier process negotiated; nothing is sent, and :meth:`layer_up` is not called."""
        self._stop_timer()
        self.acknowledged = True
        self.state = State.OPENED

    def stop(self) -> None:
        """Stop the timer and return to state Initial without a packet to the peer."""
        self._stop_timer()
        self.state = State.INITIAL

    def next_identifier(self) -> int:
        """Return the next Identifier of a packet, from 0 to 255, one above the last."""
        self._identifier = self._identifier + 1 & 0xFF
        return self._identifier

    def receive(self, received: bytes) -> None:
        """Process a packet of this protocol. An invalid one is silently discarded (RFC 1661, section 5)."""
        if len(received) < 4 or self.state <= State.STARTING:
            return
        code, identifier, length = received[0], received[1], received[2] << 8 | received[3]
        if length < 4 or length > len(received):
            return
        data = received[4:length]
        self._received = received[:length]
        self._answer = identifier, b""
        if code == Code.CONFIGURE_REQUEST:
            self._configure(identifier, data)
        elif code <= Code.CONFIGURE_REJECT and code:
            self._answered(code, identifier, data)
        elif code == Code.TERMINATE_REQUEST:
            self.handle(Event.TERMINATE)
        elif code == Code.TERMINATE_ACK:
            self.handle(Event.TERMINATE_ACK)
        elif code == Code.CODE_REJECT:
            fatal = bool(data) and Code.CONFIGURE_REQUEST <= data[0] <= Code.CODE_REJECT
            self.handle(Event.REJECT_FATAL if fatal else Event.REJECT_BENIGN)
        elif not self.other_code(code, identifier, data):
            self.handle(Event.UNKNOWN)

    def handle(self, event: Event) -> None:
        """Make the state transition of an event according to the table of RFC 1661, section 4.1."""
        cell = TRANSITIONS[event][self.state]
        if cell is None:
            return
        actions, state = cell
        if event is Event.DOWN:
            self._stop_timer()
        # tld comes first and sends nothing; tlu and tlf come last, and what they call finds the new state.
        before, self.state = self.state, state
        for action in actions:
            self._ACTIONS[action](self)
            if self.state is not state:
                return
        if state not in _TIMED:
            self._stop_timer()
        elif self._cancel is None and (before is not state or actions):
            self._start_timer()

    def _configure(self, identifier: int, data: bytes) -> None:
        options = read_options(data)
        if options is None:
            return
        if self.state in (State.CLOSING, State.STOPPING):
            return
        if self.state is State.CLOSED:
            self.handle(Event.REQUEST_GOOD)
            return
        repeated = _repeated(options)
        reject, nak = (repeated, ()) if repeated else self.judge(options)
        if not reject and nak and self._naks >= self._restart.max_failure:
            insisted = {kind for kind, _ in nak}
            reject, nak = tuple(each for each in options if each[0] in insisted), ()
            if not reject:  # it does not ask for what it must have, and no option is appended any more (section 4.6)
                self.close()
                return
        if (reject or nak) and self._refusals >= self._restart.max_configure:
            self.close()
            return
        self._refusals += 1
        if reject:
            self._answer = identifier, packet(Code.CONFIGURE_REJECT, identifier, write_options(reject))
        elif nak:
            self._naks += 1
            self._answer = identifier, packet(Code.CONFIGURE_NAK, identifier, write_options(nak))
        else:
            self._refusals = self._naks = 0
            self._answer = identifier, packet(Code.CONFIGURE_ACK, identifier, data)
            self.accepted(options)
        self.handle(Event.REQUEST_BAD if reject or nak else Event.REQUEST_GOOD)

    def _answered(self, code: int, identifier: int, data: bytes) -> None:
        if identifier != self._request_identifier:
            return
        options = read_options(data)
        if options is None or (code == Code.CONFIGURE_ACK and data != self._requested):
            return
        if code == Code.CONFIGURE_ACK:
            self._request_identifier = -1  # a second answer to one request is invalid (section 5.2 to 5.4)
            self.handle(Event.ACK)
            return
        asked = read_options(self._requested) or ()
        if code == Code.CONFIGURE_REJECT and (not options or any(each not in asked for each in options)):
            return
        self._request_identifier = -1
        if self.state in (State.REQ_SENT, State.ACK_SENT, State.ACK_RCVD, State.OPENED):
            self._change_wishes(options, {kind for kind, _ in asked}, rejected=code == Code.CONFIGURE_REJECT)
        self.handle(Event.NAK)

    def _change_wishes(self, options: Options, asked: set[int], *, rejected: bool) -> None:
        """Process a Configure-Nak or, if ``rejected``, a Configure-Reject of the options that were asked for.

        Adopt the values that a Configure-Nak proposes; no longer ask for options that are rejected or were refused too often. Close
        the protocol if one of these is indispensable.
        """
        kinds = {kind for kind, _ in options}
        if not rejected:
            self._naked.update(kinds & asked)
            kinds = {kind for kind in kinds & asked if self._naked[kind] >= self._restart.max_failure}
        self._unwanted |= kinds
        if kinds & self.indispensable:
            self.close()
            return
        if not rejected:
            self.naked(tuple(each for each in options if each[0] not in kinds))
        if kinds:
            self.rejected(tuple(each for each in options if each[0] in kinds))

    def _timeout(self) -> None:
        self._cancel = None
        if self.state not in _TIMED:
            return
        if self._count > 0:
            self.handle(Event.TIMEOUT_MORE)
        else:
            self._asked = 0  # nobody answers: this negotiation is over
            self.handle(Event.TIMEOUT_LAST)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._cancel = self._clock.call_later(self._restart.restart_s, self._timeout)

    def _stop_timer(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _initialize_restart_count(self) -> None:
        terminating = self.state in (State.CLOSING, State.STOPPING)
        self._count = self._restart.max_terminate if terminating else self._restart.max_configure

    def _zero_restart_count(self) -> None:
        self._count = 0
        self._start_timer()

    def _send_configure_request(self) -> None:
        now = self._clock.now()
        if now - self._asked_s >= self._restart.negotiation_s:
            self._asked = 0
            self._naked.clear()
        if self._asked >= self._restart.max_configure:
            self.close()
            return
        self._asked, self._asked_s = self._asked + 1, now
        self._count -= 1
        self._request_identifier = self.next_identifier()
        self._requested = write_options(each for each in self.wishes() if each[0] not in self._unwanted)
        self._start_timer()
        self._send(self.protocol, packet(Code.CONFIGURE_REQUEST, self._request_identifier, self._requested))

    def _send_ack(self) -> None:
        self.acknowledged = True
        self.acknowledging()
        self._send_answer()

    def _send_answer(self) -> None:
        self._send(self.protocol, self._answer[1])

    def _send_terminate_request(self) -> None:
        self._count -= 1
        self._start_timer()
        self._send(self.protocol, packet(Code.TERMINATE_REQUEST, self.next_identifier()))

    def _send_terminate_ack(self) -> None:
        self._send(self.protocol, packet(Code.TERMINATE_ACK, self._answer[0]))

    def _send_code_reject(self) -> None:
        self._send(self.protocol, packet(Code.CODE_REJECT, self.next_identifier(), self._received[:1400]))

    def send_echo_reply(self) -> None:
        """Do nothing: only LCP has echoes."""

    def _this_layer_up(self) -> None:
        self.layer_up()

    def _this_layer_down(self) -> None:
        self.layer_down()

    def _this_layer_finished(self) -> None:
        self._stop_timer()
        self.layer_finished()

    def _nothing(self) -> None:
        """Do nothing at This-Layer-Started: the layer below starts by itself."""

    def _echo(self) -> None:
        self.send_echo_reply()

    _ACTIONS: ClassVar[dict[str, Callable[[Automaton], None]]] = {
        "tlu": _this_layer_up,
        "tld": _this_layer_down,
        "tls": _nothing,
        "tlf": _this_layer_finished,
        "irc": _initialize_restart_count,
        "zrc": _zero_restart_count,
        "scr": _send_configure_request,
        "sca": _send_ack,
        "scn": _send_answer,
        "str": _send_terminate_request,
        "sta": _send_terminate_ack,
        "scj": _send_code_reject,
        "ser": _echo,
    }
