"""Upper limits of a server's memory and work for its clients; the program gives tables, registers and the like their sizes.

Packets and control share a processor, so a request with too many elements is refused before any work is done. Messages that wait
for a client that does not read are counted in bytes. A Read is answered in slices, and as many are computed as the client takes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from holdfast._core import HoldfastError

MAX_STREAMS = 48
"""Open streams whose clients have sent an arbitration update; each occupies a worker thread."""

MAX_STREAMS_PER_CLIENT = 24
"""Of the ``MAX_STREAMS``, those of one certificate, or of one address of another machine: no client can keep all others
out."""

MAX_SILENT_STREAMS = 16
"""Open streams without an arbitration update. A further one ends the oldest stream of the client that has most of
them."""

MAX_STREAMS_PER_ROLE = 16

MAX_ROLES = 64
"""Names of roles with open streams, the default role's included."""

MAX_DIGESTS_TAKEN = 512
"""Digest messages after which no further list is taken from a switch at once; other threads may use the switch before
the next are."""

MAX_IDLE_ENTRIES = 256
"""Entries in one idle notification; further entries follow in further notifications."""

MAX_MESSAGE_BYTES = 128 << 20
"""Bytes of one request (specification, "gRPC Server Maximum Receive Message Size")."""

MAX_UPDATE_BYTES = 1 << 20
"""Bytes of one update: an element of two bytes takes a hundred when decoded, and an entry's metadata is kept."""

MAX_SMALL_REQUEST_BYTES = 1 << 20
"""Bytes of a request that is no Write and sets no pipeline."""

MAX_STREAM_MESSAGE_BYTES = 4 << 20
"""Bytes of a message on a stream; a packet has at most 64 KiB."""

MAX_PIPELINE_BYTES = 16 << 20
"""Bytes of a request that sets the pipeline."""

MAX_BATCH_MESSAGES = 1024
"""Messages in one message that batches messages of a stream (:mod:`.stream_batches`)."""

MAX_READ_ENTITIES = 1024
"""Entities of one ``ReadRequest``: each is a selection of its own, and one wildcard selects all entities of a kind."""

MAX_READS = 8
"""Reads in progress at one time; each occupies a worker thread."""

MAX_READS_PER_CLIENT = 4
"""Of the ``MAX_READS``, those of one certificate, or of one address of another machine."""

READ_STALL_S = 10.0
"""Seconds after which a Read is cancelled whose client has not taken a message."""

MAX_CALLS = 384
"""Calls in progress; further ones are refused (RESOURCE_EXHAUSTED). Each call, also a stream, occupies a worker thread
from the arrival of its headers on."""

MAX_CALLS_PER_CLIENT = 128
"""Of the ``MAX_CALLS``, those of one certificate, or of one address of another machine, besides its streams: two
clients cannot occupy all."""

MAX_CALLS_PER_CONNECTION = 128

REQUEST_S = 30.0
"""Seconds from a call's headers to the end of its request, after which the call is cancelled."""

MAX_WAITING_CALLS = 256
"""Calls whose request has not arrived completely. A further one cancels the oldest such call of the client that has
most of them."""

MAX_SLOW_CALLS = 64
"""Calls that may wait for their request longer than ``CROWDED_REQUEST_S``. If there are more, the oldest calls of the
clients with most of them are cancelled."""

CROWDED_REQUEST_S = 0.5
"""Seconds that a request may take when more than ``MAX_SLOW_CALLS`` wait; one of megabytes takes milliseconds to
arrive."""

CONNECTION_IDLE_S = 300.0
"""Seconds after which a connection without calls is closed; gRPC clients open another one when they need it."""

CONNECTION_HANDSHAKE_S = 3.0
"""Seconds in which a new connection must finish the TLS handshake, or send HTTP/2's preface, before it is closed. Each
occupies a file descriptor, and with none left nobody else can connect."""

KEEPALIVE_S = 30.0
"""Seconds without data from a client after which it is sent an HTTP/2 ping."""

KEEPALIVE_TIMEOUT_S = 20.0
"""Seconds after that ping without an answer after which the connection is closed."""

MAX_WRITE_UPDATES = 1 << 18
"""Updates of one ``WriteRequest``."""

MAX_ATOMIC_UPDATES = 1 << 12
"""Updates of a ``WriteRequest`` whose atomicity is not CONTINUE_ON_ERROR: while they are applied, no packet passes and
no other client is served."""

UPDATES_PER_SLICE = 1024
"""Updates of any other ``WriteRequest`` after which other clients are served."""

MAX_QUEUED_MESSAGES = 8192
MAX_QUEUED_BYTES = 16 << 20
"""Bytes of notifications that wait on one stream for a client that reads slowly. Further packet-ins, digests and errors
are dropped."""

MAX_QUEUED_ARBITRATIONS = 1024
"""Arbitration updates that wait on one stream. They are never dropped: a stream with more is ended."""

MAX_ROLE_NAME_BYTES = 256

MAX_QUEUED_BYTES_IN_ALL = 64 << 20
"""Bytes of notifications as for :data:`MAX_QUEUED_BYTES`, on all streams of a server together."""

MAX_ECHOED_BYTES = 256
"""Bytes of a packet or another payload that are repeated in the error that answers the client's message."""

ERROR_DETAILS_BYTES = 4096
"""Bytes of an error's details for a client that states no other limit: a default gRPC client takes 8 KiB of
metadata."""

STREAM_HANDSHAKE_S = 10.0
"""Seconds from the beginning of a stream to its first arbitration update, after which the stream is ended."""


def change(assignments: Iterable[str]) -> None:
    """Set limits, each given as ``NAME=VALUE``, for servers and devices made from now on.

    Raises :class:`HoldfastError` for a name that is not a limit, or a value that is out of range.
    """
    known = {name: value for name, value in globals().items() if name.isupper()}
    for text in assignments:
        name, separator, value = text.partition("=")
        if not separator or name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near and near[0] != name else ", as in MAX_STREAMS=96"
            raise HoldfastError(f"limit {text!r}: write NAME=VALUE with a name from docs/SECURITY.md{hint}")
        kind = type(known[name])
        try:
            number = kind(value)
        except ValueError:
            number = 0
        # gRPC takes times as milliseconds in 32 bits.
        most = 2_000_000 if name.endswith("_S") else (1 << 31) - 1
        if not 0 < number <= most:
            raise HoldfastError(
                f"limit {name}: {value!r} is no {'whole ' * (kind is int)}number above zero and at most {most}"
            )
        globals()[name] = number
