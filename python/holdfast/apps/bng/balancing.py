"""Which bucket a line is in, and which plane serves a bucket. Pure functions.

A bucket is served by the plane with the highest weight for it (rendezvous hashing, Thaler and Ravishankar 1998): a plane that
leaves gives its buckets to all others, and one that joins takes the same share from each; no other bucket moves.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable

from holdfast.apps.bng.program import BUCKETS
from holdfast.errors import NetworkError
from holdfast.subscribers.plane import Line


def bucket_of(line: Line) -> int:
    """Return the number of the bucket to which ``balancer.p4`` assigns an access line."""
    key = b"".join(number.to_bytes(2, "big") for number in (line.port, line.s_tag, line.c_tag))
    return zlib.crc32(key) % BUCKETS


def assigned(planes: Iterable[str]) -> dict[int, str]:
    """Return by bucket the name of the plane that serves it (rendezvous hashing). Raise :class:`NetworkError` without planes."""
    names = sorted(set(planes))
    if not names:
        raise NetworkError("no forwarding plane is left")
    return {bucket: max(names, key=lambda name: (_weight(name, bucket), name)) for bucket in range(BUCKETS)}


def _weight(name: str, bucket: int) -> bytes:
    return hashlib.blake2b(bucket.to_bytes(2, "big"), key=name.encode()[:64], digest_size=8).digest()
