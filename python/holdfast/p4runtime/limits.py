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
"""Streams of ``MAX_STREAMS`` for one certificate, or one address of another machine: no client can keep all others out."""

MAX_SILENT_STREAMS = 16
"""Open streams without an arbitration update. A newer one takes the place of an older one of the client that has most."""

MAX_STREAMS_PER_ROLE = 16

MAX_ROLES = 64
"""Names of roles with open streams, the default role's included."""

MAX_DIGESTS_TAKEN = 512
"""Digest messages after which no further list is taken from a switch at once. Between two such slices others have their turn."""

MAX_IDLE_ENTRIES = 256
"""Entries of one idle notification; the others come in further ones."""

MAX_MESSAGE_BYTES = 128 << 20
"""Of one request (specification, "gRPC Server Maximum Receive Message Size")."""

MAX_UPDATE_BYTES = 1 << 20
"""Of one update: decoded, an element of two bytes takes a hundred, and an entry's metadata stays."""

MAX_SMALL_REQUEST_BYTES = 1 << 20
"""Of a request that is no Write and sets no pipeline."""

MAX_STREAM_MESSAGE_BYTES = 4 << 20
"""Of a message on a stream; a packet has at most 64 KiB."""

MAX_PIPELINE_BYTES = 16 << 20
"""Of a request that sets the pipeline."""

MAX_BATCH_MESSAGES = 1024
"""Messages of a stream in one (:mod:`.stream_batches`)."""

MAX_READ_ENTITIES = 1024
"""Entities of one ``ReadRequest``: each is a selection of its own, and one wildcard selects all entities of a kind."""

MAX_READS = 8
"""In progress at one time; each occupies a worker thread."""

MAX_READS_PER_CLIENT = 4
"""Of them, those of one certificate, or of one address of another machine."""

READ_STALL_S = 10.0
"""A Read is cancelled when its client has not taken a message for so long."""

MAX_CALLS = 384
"""In progress; later ones are refused (RESOURCE_EXHAUSTED). Each, streams too, occupies a worker thread from its headers on."""

MAX_CALLS_PER_CLIENT = 128
"""Of them, calls of one certificate, or of one address of another machine, beside its streams: two clients do not take all."""

MAX_CALLS_PER_CONNECTION = 128

REQUEST_S = 30.0
"""From a call's headers until its request is whole; then the call is cancelled."""

MAX_WAITING_CALLS = 256
"""Calls whose request is not whole. For a further one, the oldest of the client that has most is cancelled."""

MAX_SLOW_CALLS = 64
"""If more wait, those that have waited for ``CROWDED_REQUEST_S`` are cancelled likewise, until so many are left."""

CROWDED_REQUEST_S = 0.5
"""A request of megabytes takes milliseconds to arrive."""

CONNECTION_IDLE_S = 300.0
"""A connection without calls is closed after so long; gRPC clients open another one when they need it."""

CONNECTION_HANDSHAKE_S = 3.0
"""A connection is closed that has not finished the handshake of TLS, or said that it is HTTP/2, after so long. Those that wait
for it take descriptors of files, of which a process has a limited number: with too many, nobody else can connect."""

KEEPALIVE_S = 30.0
"""A client that was not heard for so long is asked for a sign of life."""

KEEPALIVE_TIMEOUT_S = 20.0
"""Its connection is closed when none comes."""

MAX_WRITE_UPDATES = 1 << 18
"""Updates of one ``WriteRequest``."""

MAX_ATOMIC_UPDATES = 1 << 12
"""Updates of one whose atomicity is not CONTINUE_ON_ERROR: no packet passes and no other client is heard while they are applied."""

UPDATES_PER_SLICE = 1024
"""After so many updates of other batches, other clients have their turn."""

MAX_QUEUED_MESSAGES = 8192
MAX_QUEUED_BYTES = 16 << 20
"""Notifications that wait on one stream for a client that reads slowly. Packet-ins, digests and errors beyond are dropped."""

MAX_QUEUED_ARBITRATIONS = 1024
"""Arbitration updates that wait likewise. They are never dropped: a stream with more ends."""

MAX_ROLE_NAME_BYTES = 256

MAX_QUEUED_BYTES_IN_ALL = 64 << 20
"""The limit as in :data:`MAX_QUEUED_BYTES`, for all streams of a server together."""

MAX_ECHOED_BYTES = 256
"""Of a packet or another payload, in the error that answers the message that it came in."""

ERROR_DETAILS_BYTES = 4096
"""Of the details of an error, for a client that does not say that it takes more: a default gRPC client takes 8 KiB of metadata."""

STREAM_HANDSHAKE_S = 10.0
"""From the beginning of a stream to its first arbitration update."""


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
