"""What clients can make a server hold or do at most; tables, registers and the like have the sizes that their program gives them.

Packets and control share a processor, so a request with too many elements is refused before any work is done. What waits for a
client that does not read is counted in bytes. The answer of a Read and the number of Reads at one time are not bounded.
"""

from __future__ import annotations

MAX_STREAMS = 48
"""Open at one time; each occupies a worker thread."""

MAX_STREAMS_PER_ROLE = 16

MAX_ROLES = 64
"""Names of roles with open streams, the default role's included."""

MAX_DIGEST_LIST_VALUES = 65_536
"""Values of one digest list: it is sent when it has so many, whatever ``max_list_size`` and ``max_timeout_ns`` are."""

MAX_UNACKNOWLEDGED_VALUES = 65_536
"""Values remembered per digest until a list is acknowledged; the oldest list is forgotten beyond."""

MAX_MESSAGE_BYTES = 128 << 20
"""Of one request (specification, "gRPC Server Maximum Receive Message Size")."""

MAX_READ_ENTITIES = 1024
"""Entities of one ``ReadRequest``: each is a selection of its own, and one wildcard selects all entities of a kind."""

MAX_WRITE_UPDATES = 1 << 18
"""Updates of one ``WriteRequest``."""

MAX_QUEUED_MESSAGES = 8192
MAX_QUEUED_BYTES = 16 << 20
"""Notifications that wait on one stream for a client that reads slowly. Packet-ins, digests and errors beyond are dropped."""

MAX_QUEUED_ARBITRATIONS = 1024
"""Arbitration updates that wait likewise. They are never dropped: a stream with more ends."""

MAX_ROLE_NAME_BYTES = 256

MAX_QUEUED_BYTES_IN_ALL = 64 << 20
"""What :data:`MAX_QUEUED_BYTES` is for one stream, for all streams of a server together."""

MAX_ECHOED_BYTES = 256
"""Of a packet or another payload, in the error that answers the message that it came in."""

STREAM_HANDSHAKE_S = 10.0
"""From the beginning of a stream to its first arbitration update."""
